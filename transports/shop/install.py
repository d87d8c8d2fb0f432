"""An eSIM as its buyer installs it: by one tap, by a picture, or by typing."""

import base64
from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import quote

from operations.services.issuing.drawn_esim import phone_code
from operations.services.issuing.qr_picture import drawable, picture

# Universal links: iOS 17.4 and newer, Android 10 and newer with Google's services. Older ones show a page that says so.
IPHONE = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata="
ANDROID = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata="


class Install(NamedTuple):
    """`code` is exactly what the picture shows. Whoever has it can install the eSIM."""

    code: str
    smdp: str
    matching: str
    picture: str
    iphone: str
    android: str


def install_of(esim: Mapping[str, object]) -> Install | None:
    """Every way there is; none where the profile has nothing that a phone takes."""
    smdp, matching = str(esim.get("smdp_address") or ""), str(esim.get("matching_id") or "")
    code = phone_code(cast("str | None", esim.get("activation_code")), smdp, matching)
    if code is None or not drawable(code):
        return None
    drawn = base64.b64encode(picture(code, "png")).decode()
    named = quote(code, safe=":$")  # as both makers write it
    return Install(
        code=code,
        smdp=smdp,
        matching=matching,
        picture=f"data:image/png;base64,{drawn}",
        iphone=IPHONE + named,
        android=ANDROID + named,
    )
