"""Explicit Runge-Kutta methods as tables: Bogacki & Shampine 3(2), Dormand & Prince 5(4), and DOP853.

Bogacki & Shampine 1989, Appl. Math. Lett. 2(4); Dormand & Prince 1980, J. Comput. Appl. Math. 6(1), with the
interpolant of Hairer, Nørsett & Wanner, Solving ODEs I, second edition, section II.6; DOP853 of the same book, section
II.10, with the digits of its program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Tableau:
    """Coefficients of a method with s stages; the slope at the end of a step is one more stage.

    nodes: the times of stages 1 to s - 1; weights: of earlier slopes for each of them; final: of the s slopes for the
    value; errors: of s + 1 slopes for each estimate of the error; order: the estimate's. more_nodes,
    more_weights: stages for the interpolant alone. interpolant: of the slope of each stage for each power of the share
    of the step, from the first on.
    """

    nodes: Row
    weights: tuple[Row, ...]
    final: Row
    errors: tuple[Row, ...]
    order: int
    interpolant: tuple[Row, ...]
    more_nodes: Row = ()
    more_weights: tuple[Row, ...] = ()


RK23: Final = Tableau(
    nodes=(1 / 2, 3 / 4),
    weights=((1 / 2,), (0.0, 3 / 4)),
    final=(2 / 9, 1 / 3, 4 / 9),
    errors=((5 / 72, -1 / 12, -1 / 9, 1 / 8),),
    order=2,
    interpolant=((1.0, -4 / 3, 5 / 9), (0.0, 1.0, -2 / 3), (0.0, 4 / 3, -8 / 9), (0.0, -1.0, 1.0)),
)


def _quartic(final: Row, dense: Row) -> tuple[Row, ...]:
    """Return the interpolant y + s (c + (1 - s) (b + s (d + (1 - s) e))) by powers of s.

    c is the change h sum(final k), b = h k_0 - c, d = c - h k_s - b, and e = h sum(dense k).
    """
    change = np.array([*final, 0.0])
    first, last = np.eye(len(change))[0], np.eye(len(change))[-1]
    bend = first - change
    twist = change - last - bend
    rest = np.array(dense)
    powers = (change + bend, -bend + twist + rest, -twist - 2 * rest, rest)
    return tuple(map(tuple, np.stack(powers, 1).tolist()))


_DP_FINAL: Final = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_DP_DENSE: Final = (
    -12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip

RK45: Final = Tableau(
    nodes=(1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    weights=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    final=_DP_FINAL,
    errors=((71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),),
    order=4,
    interpolant=_quartic(_DP_FINAL, _DP_DENSE),
)

_DOP_NODES: Final = (
    0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726, 0.3333333333333333, 0.25,
    0.3076923076923077, 0.6512820512820513, 0.6, 0.8571428571428571, 1.0,
)  # fmt: skip
_DOP_WEIGHTS: Final = (
    (0.05260015195876773,),
    (0.0197250569845379, 0.0591751709536137),
    (0.02958758547680685, 0.0, 0.08876275643042054),
    (0.2413651341592667, 0.0, -0.8845494793282861, 0.924834003261792),
    (0.037037037037037035, 0.0, 0.0, 0.17082860872947386, 0.12546768756682242),
    (0.037109375, 0.0, 0.0, 0.17025221101954405, 0.06021653898045596, -0.017578125),
    (0.03709200011850479, 0.0, 0.0, 0.17038392571223998, 0.10726203044637328, -0.015319437748624402,
     0.008273789163814023),
    (0.6241109587160757, 0.0, 0.0, -3.3608926294469414, -0.868219346841726, 27.59209969944671, 20.154067550477894,
     -43.48988418106996),
    (0.47766253643826434, 0.0, 0.0, -2.4881146199716677, -0.590290826836843, 21.230051448181193, 15.279233632882423,
     -33.28821096898486, -0.020331201708508627),
    (-0.9371424300859873, 0.0, 0.0, 5.186372428844064, 1.0914373489967295, -8.149787010746927, -18.52006565999696,
     22.739487099350505, 2.4936055526796523, -3.0467644718982196),
    (2.273310147516538, 0.0, 0.0, -10.53449546673725, -2.0008720582248625, -17.9589318631188, 27.94888452941996,
     -2.8589982771350235, -8.87285693353063, 12.360567175794303, 0.6433927460157636),
)  # fmt: skip
_DOP_FINAL: Final = (
    0.054293734116568765, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
    0.3111643669578199, -0.1521609496625161, 0.20136540080403034, 0.04471061572777259,
)  # fmt: skip
_DOP_ERRORS: Final = (
    (0.01312004499419488, 0.0, 0.0, 0.0, 0.0, -1.2251564463762044, -0.4957589496572502, 1.6643771824549864,
     -0.35032884874997366, 0.3341791187130175, 0.08192320648511571, -0.022355307863886294, 0.0),
    (-0.18980075407240762, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
     -0.4226823213237919, -0.1521609496625161, 0.20136540080403034, 0.02265179219836082, 0.0),
)  # fmt: skip
_DOP_MORE_NODES: Final = (
    0.1, 0.2, 0.7777777777777778,
)  # fmt: skip
_DOP_MORE_WEIGHTS: Final = (
    (0.056167502283047954, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25350021021662483, -0.2462390374708025, -0.12419142326381637,
     0.15329179827876568, 0.00820105229563469, 0.007567897660545699, -0.008298),
    (0.03183464816350214, 0.0, 0.0, 0.0, 0.0, 0.028300909672366776, 0.053541988307438566, -0.05492374857139099, 0.0,
     0.0, -0.00010834732869724932, 0.0003825710908356584, -0.00034046500868740456, 0.1413124436746325),
    (-0.42889630158379194, 0.0, 0.0, 0.0, 0.0, -4.697621415361164, 7.683421196062599, 4.06898981839711,
     0.3567271874552811, 0.0, 0.0, 0.0, -0.0013990241651590145, 2.9475147891527724, -9.15095847217987),
)  # fmt: skip
_DOP_DENSE: Final = (
    (-8.428938276109013, 0.0, 0.0, 0.0, 0.0, 0.5667149535193777, -3.0689499459498917, 2.38466765651207,
     2.117034582445028, -0.871391583777973, 2.2404374302607883, 0.6315787787694688, -0.08899033645133331,
     18.148505520854727, -9.194632392478356, -4.436036387594894),
    (10.427508642579134, 0.0, 0.0, 0.0, 0.0, 242.28349177525817, 165.20045171727028, -374.5467547226902,
     -22.113666853125306, 7.733432668472264, -30.674084731089398, -9.332130526430229, 15.697238121770845,
     -31.139403219565178, -9.35292435884448, 35.81684148639408),
    (19.985053242002433, 0.0, 0.0, 0.0, 0.0, -387.0373087493518, -189.17813819516758, 527.8081592054236,
     -11.57390253995963, 6.8812326946963, -1.0006050966910838, 0.7777137798053443, -2.778205752353508,
     -60.19669523126412, 84.32040550667716, 11.99229113618279),
    (-25.69393346270375, 0.0, 0.0, 0.0, 0.0, -154.18974869023643, -231.5293791760455, 357.6391179106141,
     93.40532418362432, -37.45832313645163, 104.0996495089623, 29.8402934266605, -43.53345659001114,
     96.32455395918828, -39.17726167561544, -149.72683625798564),
)  # fmt: skip


def _septic(final: Row, dense: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return the interpolant y + s (r0 + (1 - s) (r1 + s (r2 + (1 - s) (r3 + ...)))) by powers of s.

    r0, r1 and r2 are c, b and d as of `_quartic`; the remaining ones are h sum(dense k).
    """
    stages = len(dense[0])
    change = np.array([*final, *[0.0] * (stages - len(final))])
    first, last = np.eye(stages)[0], np.eye(stages)[len(final)]
    rows = [change, first - change, 2 * change - first - last, *map(np.array, dense)]
    powers, share = np.zeros((stages, len(rows))), np.array([1.0])
    for k, row in enumerate(rows):
        share = np.convolve(share, [0.0, 1.0] if k % 2 == 0 else [1.0, -1.0])
        powers += np.outer(row, np.pad(share[1:], (0, len(rows) + 1 - len(share))))
    return tuple(map(tuple, powers.tolist()))


DOP853: Final = Tableau(
    nodes=_DOP_NODES, weights=_DOP_WEIGHTS, final=_DOP_FINAL, errors=_DOP_ERRORS, order=7,
    interpolant=_septic(_DOP_FINAL, _DOP_DENSE), more_nodes=_DOP_MORE_NODES, more_weights=_DOP_MORE_WEIGHTS,
)  # fmt: skip
