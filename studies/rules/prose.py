"""Text of the rules page; its numbers are filled in."""

INTRODUCTION = """# Rule recommendation on the IFTTT set

{made_by} {seconds:.0f} s of wall time are behind the reported seeds.

The runs use the same ServerApp and ClientApp as `fedloom simulate`: one client per home, up to {rounds} rounds of 3 local
steps, λ = 1, dropout 0.5, homes of more than two devices. GraphRule is one client that holds all homes. Model `paper` is
the paper's (one pool of negatives), `default` is the product's (five pools).

**Tuning.** Rates and rounds are chosen on seed {tuning_seed}, which is not reported. {share} of the rules that remain after
the test rules are held out for validation. The point of the grid and the round (a multiple of {every}) with the least
validation loss are used. Then each reported seed trains on all but its test rules for this number of rounds and is measured
once. A seed decides the split, the negatives, the initial model and the dropout masks. All methods use the same splits and
test negatives.

**Metrics** are means over homes with a test rule; ± is the standard deviation over seeds. MR counts from 0, as in the
paper's tables. MR(RT) leaves out relations that the pair already has in training. HR@N ranks every rule that could be
added; with the rule filter, only triples (trigger type, action type, relation) that occur in the training rules of any
home. The *paper* rows are its Table 4, on other entities and relations: only the order of methods is comparable. The count
baselines count training rules. Two or three numbers turn the counts into logits; they are fitted on training examples with
each rule left out of its own counts."""

SETUP = """## Setup {setup}: {about}

{homes:.0f} homes, {entities:.0f} device types, {relations:.0f} relations, {rules:.0f} rules. On seed 0: {tested_homes:.0f}
homes with {test_rules:.0f} test rules. At most {seeds} seeds a row; the column states the number."""

PAIRED = """First minus second, mean ± standard deviation over the seeds that both have, then the number of seeds in which
the first is better. Lower is better for loss and MR."""

LEAK = """The devices of a home are those in its rules. A device that occurs in test rules alone is isolated in the training
graph, which reveals that a test rule exists: {leak:.0%} of the test rules have such an end. This table leaves them out, and
negatives with such an end too. The main table includes them, as the paper's does."""

TUNED = """Least validation loss on seed {tuning_seed} and its round."""

CURVES = """## Test loss by round

Set-up {setup}, the paper's model, {rounds} rounds of 3 local steps, measured every {every} rounds on test rules. SGD and local
Adam have the points that are tuned above. The paper's letter is local Adam at rate .1, whose moments begin anew in each round,
with its displacements in Eq 3. *Rise* is the last loss over the least of any round, less 1: divergence."""

DRIFT = """## Drift laboratory: embedded homes by their difference in taste

{homes} generated homes, of which those with at least {least} rules take part. Preferences of a kind of household are raised
to the power *specialisation*: at 0 households do not differ. The paper's model, local SGD of rate {rate:g} with clip {clip:g},
untuned, {rounds} rounds; FedRule by Eq 3. Metrics of test rules after the last round; *rise* as above. The homes are the same
for all seeds. Behind a server Adam, clients have rate 0.1. With one local step both methods are equal: the control variates
of all homes sum to zero."""

TWINS = """## Homes with two devices of a type

The homes above at specialisation 1 that have two devices of one type, which are nodes of their own; twelve local steps.
Metrics are of all test rules."""
