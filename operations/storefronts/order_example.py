"""The order of the documentation."""

from operations.storefronts.order_shape import Order, SoldPlan

ORDER = "ord_7m2q9k4xb1zdp0rt5v8w3y6h2n"
NUMBER = "onr_01k0a8w7zv6q4k3m2n1p0r9s8t"
TOP_UP = "tuc_3k8t1v6w9x2y5z7a4b0c8d1e6f"
SOLD: SoldPlan = {"slug": "nordic-1gb", "name": "Nordic 1 GB", "data_mb": 1000, "validity_days": 30, "countries": ["DK", "NO", "SE"]}
READY: Order = {
    "id": ORDER,
    "object": "storefront.order",
    "number": NUMBER,
    "storefront": "fjord-travel",
    "plan": SOLD,
    "status": "ready",
    "amount": 900,
    "currency": "EUR",
    "error": None,
    "esim": {
        "iccid": "8988303700000100286",
        "activation_code": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
        "qr_code": "LPA:1$smdp.sandbox.invalid$F7K2-QX9M-41TB",
        "smdp_address": "smdp.sandbox.invalid",
        "matching_id": "F7K2-QX9M-41TB",
    },
    "refund": None,
    "top_ups": [
        {"id": TOP_UP, "plan": SOLD, "status": "ready", "amount": 900, "currency": "EUR", "created": "2026-11-27T10:12:00Z"},
    ],
    "created": "2026-11-20T09:00:00Z",
    "paid_at": "2026-11-20T09:01:10Z",
    "ready_at": "2026-11-20T09:01:12Z",
    "cancelled_at": None,
}
