"""Text of the traffic page; its numbers are filled in."""

INTRODUCTION = """# Traffic forecasts: results on real sensors

{made_by}

120 hours in, 24 hours out, stride-1 windows. MSE is in units of each client's own training deviation, mean over clients,
without filled gaps. GRU of two stacked cells of width 16, batches of 64 windows. Step t of the horizon reads x[t+1 : t+97],
which ends with the same hour of yesterday, in the paper's model too, which has x[t : t+96] (.067 instead of .054 in an
exploration). On SUMO's streets it reads the whole history. Every method makes the same number of uploads, each after 16
local steps. FedSTL uploads twice a round, after 12 steps of its clients and 4 for its clusters (the default model after 16 and
2): at equal uploads it has half the rounds and about half the steps of the others. Row *equal rounds* has as many rounds and
local steps as the others, and twice the uploads; the verdict takes it. The paper's model trains with Adam at .01, one rate for
all, taken from an exploration and not tuned here.

*student*: the model that a client uses. It is the shared model as received under FedAvg, FedProx and FedRep (with the
client's own head), the personalized model under Ditto, and the client's last training result under IFCA and FedSTL.
*cluster*: their shared model with the client's own head, before the client's local steps. *teacher*: projection of the
student's forecasts onto the client's property, or nine tenths of the way to it where the property is calibrated at 90 %.
ρ is the share of hours, of pairs of hours, or of whole days that satisfy the property. **ρ alone does not measure quality**:
any average of training days has 100 %, the truth has less. The truth's own ρ and the property's width (in standard deviations;
SUMO's has one side and no width) are therefore the first row of each table. *ρ cluster* is of points. Wall times are of a
shared machine, on which some runs paused for minutes: do not compare them.

All rows read histories as they are (`tasks.traffic.repair=none`), except those named as repaired. Absent rows were not run.
*Paper* is its Table 2, MSE and ρ in %, of students, clusters ("-S") and teachers, on data that are not public in this form
(FHWA 2019): for orientation. RNN, LSTM and transformer have tables of their own with all seven methods. A transformer's step
is 18 GFLOP at a batch of 64 (two layers over 120 tokens) where a GRU's is .06; it trains on batches of 16 at Adam's .001 for 8
uploads.

At Boroondara and on SUMO's streets a round draws a tenth of the clients at random. Of Boroondara's 105, seeds 0 to 2, 3, 1
and 1 are never drawn in 40 rounds, 14, 9 and 14 in FedSTL's 20; of transformers' 8 rounds 45, 45 and 44, of FedSTL's 4 there
67, 66 and 66. They count, with private layers as the server initialized them. Private layers therefore look worse there than
they are for a client that took part, and transformers at Boroondara say little about methods that have any."""

PARETO = """## Error and satisfaction

The paper's model on the GRU, means over seeds. The dashed line is the truth under the same property."""

COLD_START = """Sensors of which only the last days before the test are available. Share of the true test days, from every
hour on, that satisfy their own property, and the weaker of it and the one pooled from the group of five to nine members
whose ranges are closest to their readings; width in their own deviations."""

FAULTS = """One FedAvg GRU, seed 0; only the histories that it reads are broken. MSE of the student, and after correction by
each property with the change in per cent."""

REPAIR = """The same histories after repair, MSE. *By the property*: what the calibrated ranges forbid is replaced by the
profile, as `tasks.traffic.repair=property` does. *z rule*: readings beyond three deviations are replaced by the profile.
*Hampel*: a median filter of seven readings. *By last week*: what the ranges forbid is as a week before."""
