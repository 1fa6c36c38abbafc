"""Office files from before 2007, written by xlwt 1.3 and msgforge 1.0, and files made from them."""

from __future__ import annotations

import base64
import zlib

XLS = zlib.decompress(
    base64.b85decode(
        "c-p&gUhu)fjZzO8(10BSGsD0CoD6J8VvIn{3F8Pb0OkMx2QgtZ2N3@s1w#sOasVTejg?_H?-_Pb9D?HeAp;Y`29|?B"
        "l7Zn75XUeSF!<%?r7F-7IDy@e$Ov+SEs$hnm;)5yV~_;9N(f9QgGpg9xgM-?514cSi}Zp?TcFwpj8P2d?ftYYps6^5"
        "NeL{+#{e>SJ6O*xu!tdpD8mU*Dz2Zv2vN(*;8>KIm@_yf<XCtZmM{S0%{?_QwJ0&?0fPuI0+%p+{jb2l@CBAr4=9X^"
        "(^s640Vw_hRh%7*_+%y)28ITP{|Vp(-U=*J4>3au(xBADl+3*J;y(=1;DpHpDP9YTQj3dAi&9yEQC{@zekvEJL<Z+z"
        "0hAof3r^WQKr)4aAIug68zBHR<j=~Fmwb}~?Bl^A4d7B6QnsstoWt;+p%J75sF@Ee!vrU_z@#>qYyz7Kahw#G6al76"
        "AgvZ43T3!8gVnTvWz~T87=yuOdvzqX29VwQI&g<v>tlOOAbXwr!zz(=*X<WFC;{u56rg?(Y-Z45)M1=869jhJ!)Qim"
        "IdB(DN@A1=983aGxBrJ$VEhb!8MweqK`>dz#0B=dAVanjL_H&zkE)&#tR6(#F$pnj0|$r$QoYE<FbYP&C>RB!U=)mk"
        "Q7{Td!O#GV(6&9O-vMg<vqF0i?9g$Yzd-zNbeLq=f*^)`AS?lPOkElBfOHW<B}wT=jDeLAW)>rndSK&)AP^3;y@(;3"
        "Aqnh`Y?9M2um{M9>>r{v3Q#W#k!t@xQrt;n`vLDt!jk"
    )
)
"""A workbook with the sheet ``Readings``: pressure, 42.5, Größe."""

MSG = zlib.decompress(
    base64.b85decode(
        "c-rk+&2Jk;6o2cr*Ug9Bq|H~IHrX_7XiG_LlCTOwd^9AehoTCq-jJ2XRvVQ%mSa%4@vrbFaO2348~g<njvTr47MtJ9"
        "&Te;Bw0^Ve#j41&o+r<<GrxHs``*kbzx_J>#}7YN{-hXvNH+EQW8_4Bv%tAPnDS-8y?(zR{M<jKH;PWc!hbe=mj@TX"
        "!skWs8Sof*96SM@RK6~wJ?n=6O@q&=-%shyqn-f={tr0n|MTFPSbtJp!#r<+uc`TNpnV&BQ_1USZ=J^6Q0NOf!lz3v"
        "?NSSEhrS~dnxldh%q8<g$*&MU``vs0Hl{=>nSko}v}m86Qj-p;0qI-()uCfZN9d{1I#pkTe+?BVz@H^^68OjT4L!tn"
        "mmVp+I=G6zKT+-8E63lUoMlDo9v63tfxkf>3qPlFHy7Vh@9H4@O?sDwAB`stzF4ozz<&=b;NaV;R&nuz=Lh3&aq!7h"
        "|2z}l_x@o09mDu5u>8Nnj{l<CCvfo{mj4C*ZYJ?pWZ8d5;&Si{YCpuqKf}V`l^Gz5_!GWbV&U`NzX`+m8)x{xredFi"
        "FG@+-!2V*r_Xpr_(WeqQi}))s{O{xQ@^4A)!MOP47=9b|_6Xmi?sidkn^+6C4p$SzpLkckw_f6RfOG(y_A5~9v>J&9"
        "{}a&rWLZ;6_e#S0Z;oHn@Tb-OcR3;cKCIrw_W?aNw!jC#4{U#B$on5Z{%W!vX8wuZ7rY*SgM)9)$bBe3{`vTuBhx>~"
        "{8{AxSw{Zd2>m}e|IDMkU||0_M*iCf{XcyD=UMu11C_V`SWxFxF8%@oe+!s<*nwuD{{^=Hvx&b7WB*|ie;3t!T>Qlm"
        "$KOSk{`~m6r0z<%_?H;?S;pTI+yB|b-!kL;?Vr7CtopNpcGbZCt~vt^#?L1HR#@@xvG@O%(XJWjf0=E6FBAP&+4#Ko"
        "?<(5s2Krx#oxfA=zpX{X^OsofFGIw44e_rJ7vI?b?|^@z;gKo+uqh4x9lA$%VcXB;EpXEq`ySq%r|_MN@f~VNpPA4B"
        "&OIIanm)$JXYwAn4XKG0iTNH49RDR&e;=zzN;?WaDgEE|e~7iV60e>xrX}zHlg{uNo_aygrQMtGLR<Ocm~Ki*%(V|m"
        "%vhpv*y^!-?g%{%*|uc9an+MgX#GF6U)u4}J9R74zTE3n<X+=kD0@<#3*~l9u1q?rM*H%Tl*dDPIVM|Q>GEyT$2Umt"
        "Z^q<YY&=Z~`9Ub>%ldqFIeLF=Q&Gwbp<LQ@!drGB|NfDX|2hf!|CaJtK9J|-daQ8#n)W{rHuk`dc6Yc~jy|6@e$&3c"
        "Y4JxrK5hO;YrnMkqaNQ<b$cD(&%ma1*g8IJG?V9@q`1Rcf7<a~Y56YQl9u1cZnKq059GnBo~LqEJ+IlZ{@%7Ozo<uL"
        "n`S5Vywp4EM9z&i(YBtasH)4)>$-eW*XQeN{b?!C-yNX88`Iy7>F>t$&l&1(jYxl+R?0e_zusaf7d#z*!gC^LMw@0l"
        "N3&<%)9ZFICfi=D4p*c7Im_~*_FAU07p?OF{R91eg^m"
    )
)
"""A message ``Pump order`` from Carl to Anna and Ben, with an attachment ``note.txt``."""


def with_stream(name: str) -> bytes:
    """Return an OLE file whose only stream has that name."""
    before, after = "Workbook".encode("utf-16-le"), name.encode("utf-16-le")
    at = XLS.index(before)
    entry = after.ljust(64, b"\0") + (len(after) + 2).to_bytes(2, "little")
    return XLS[:at] + entry + XLS[at + 66 :]
