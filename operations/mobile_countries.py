"""Which country a mobile network stands in: mobile country codes (ITU-T E.212) to ISO 3166-1 alpha-2.

Left out, so that they answer None: codes of no country (001, 901, 902, 991, 999), and codes that span several where the network is not
known either. Kosovo is XK, which ISO leaves to its users. 289 is in use but was never assigned.
"""

from collections.abc import Mapping

MCC_TABLE = """
    202 GR  204 NL  206 BE  208 FR  212 MC  213 AD  214 ES  216 HU  218 BA  219 HR  220 RS  221 XK  222 IT  225 VA  226 RO  228 CH
    230 CZ  231 SK  232 AT  234 GB  235 GB  238 DK  240 SE  242 NO  244 FI  246 LT  247 LV  248 EE  250 RU  255 UA  257 BY  259 MD
    260 PL  262 DE  266 GI  268 PT  270 LU  272 IE  274 IS  276 AL  278 MT  280 CY  282 GE  283 AM  284 BG  286 TR  288 FO  290 GL
    292 SM  293 SI  294 MK  295 LI  297 ME
    302 CA  308 PM  310 US  311 US  312 US  313 US  314 US  315 US  316 US  330 PR  332 VI  334 MX  338 JM  342 BB  344 AG  346 KY
    348 VG  350 BM  352 GD  354 MS  356 KN  358 LC  360 VC  363 AW  364 BS  365 AI  366 DM  368 CU  370 DO  372 HT  374 TT  376 TC
    400 AZ  401 KZ  402 BT  404 IN  405 IN  406 IN  410 PK  412 AF  413 LK  414 MM  415 LB  416 JO  417 SY  418 IQ  419 KW  420 SA
    421 YE  422 OM  424 AE  425 IL  426 BH  427 QA  428 MN  429 NP  430 AE  431 AE  432 IR  434 UZ  436 TJ  437 KG  438 TM  440 JP
    441 JP  450 KR  452 VN  454 HK  455 MO  456 KH  457 LA  460 CN  461 CN  466 TW  467 KP  470 BD  472 MV
    502 MY  505 AU  510 ID  514 TL  515 PH  520 TH  525 SG  528 BN  530 NZ  534 MP  535 GU  536 NR  537 PG  539 TO  540 SB  541 VU
    542 FJ  543 WF  544 AS  545 KI  546 NC  547 PF  548 CK  549 WS  550 FM  551 MH  552 PW  553 TV  554 TK  555 NU
    602 EG  603 DZ  604 MA  605 TN  606 LY  607 GM  608 SN  609 MR  610 ML  611 GN  612 CI  613 BF  614 NE  615 TG  616 BJ  617 MU
    618 LR  619 SL  620 GH  621 NG  622 TD  623 CF  624 CM  625 CV  626 ST  627 GQ  628 GA  629 CG  630 CD  631 AO  632 GW  633 SC
    634 SD  635 RW  636 ET  637 SO  638 DJ  639 KE  640 TZ  641 UG  642 BI  643 MZ  645 ZM  646 MG  648 ZW  649 NA  650 MW  651 LS
    652 BW  653 SZ  654 KM  655 ZA  657 ER  658 SH  659 SS
    702 BZ  704 GT  706 SV  708 HN  710 NI  712 CR  714 PA  716 PE  722 AR  724 BR  730 CL  732 CO  734 VE  736 BO  738 GY  740 EC
    742 GF  744 PY  746 SR  748 UY  750 FK  995 IO
"""
# Networks outside the country their code belongs to, and the known ones of codes that span several (340, 362, 647).
NETWORK_TABLE = """
    234-03 JE  234-18 IM  234-36 IM  234-50 JE  234-55 GG  234-58 IM  255-00 MD  310-032 GU  310-059 BM  310-110 MP  310-140 GU
    310-370 GU  311-780 AS  338-05 LC  338-050 TC  340-10 GP  340-11 GF  340-12 MQ  362-51 SX  362-69 CW  362-91 CW  425-05 PS
    425-06 PS  505-10 NF  647-01 YT
"""


def code_pairs(text: str) -> list[tuple[str, str]]:
    """Alternating codes and countries."""
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


COUNTRY_BY_MCC: Mapping[str, str] = dict(code_pairs(MCC_TABLE))
# By number: bridges write the network code with two digits, with three, or without its zeros.
COUNTRY_BY_NETWORK: Mapping[tuple[str, int], str] = {(code[:3], int(code[4:])): country for code, country in code_pairs(NETWORK_TABLE)}


def network_country(mcc: str, mnc: str | None) -> str | None:
    """The country of a network, or None where the codes do not tell."""
    if mnc is not None and (mcc, int(mnc)) in COUNTRY_BY_NETWORK:
        return COUNTRY_BY_NETWORK[mcc, int(mnc)]
    return COUNTRY_BY_MCC.get(mcc)
