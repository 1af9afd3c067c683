package leeward.grouping;

import java.util.Arrays;

/**
 * The order in which a sender's tuples go round tasks of different weights: smooth weighted rotation.
 *
 * <p>leeward.core.rotation has the same rule, and tests/vectors/rotation.json holds both. The round is made when weights
 * come, so a tuple costs one look at an array, as it does without weights.
 */
final class Rotation {
    /** Weights add up to at most so many: that is the length of one round. */
    static final int LONGEST = 1024;

    private Rotation() {
    }

    /**
     * One round over the tasks, in which each has as many turns as its weight, spread as evenly as can be.
     *
     * @param weights by index, the lowest task first
     * @return the index of each turn; empty without any weight
     * @throws IllegalArgumentException if a weight is below 0, or the round longer than {@link #LONGEST}
     */
    static int[] round(int[] weights) {
        long total = 0;
        for (int weight : weights) {
            if (weight < 0) {
                throw new IllegalArgumentException("weights " + Arrays.toString(weights) + ": one is below 0");
            }
            total += weight;
        }
        if (total > LONGEST) {
            throw new IllegalArgumentException("weights add up to " + total + ", at most " + LONGEST + " are allowed");
        }
        int[] turns = new int[(int) total];
        int[] credit = new int[weights.length];
        for (int turn = 0; turn < turns.length; turn++) {
            int chosen = 0;
            for (int i = 0; i < credit.length; i++) {
                credit[i] += weights[i];
                if (credit[i] > credit[chosen]) {
                    chosen = i;
                }
            }
            credit[chosen] -= turns.length;
            turns[turn] = chosen;
        }
        return turns;
    }
}
