//! From values to places: a scale begins at zero and ends at a round number.

use super::HEIGHT;

/// Maximum number of steps of a scale.
const MOST_STEPS: i64 = 4;

/// A linear scale from zero.
pub(super) struct Scale {
    step: i64,
    steps: i64,
}

impl Scale {
    /// The scale of values up to this one.
    pub(super) fn to(most: i64) -> Scale {
        let most = most.max(1);
        let mut decade = 1_i64;
        loop {
            for step in [decade, decade.saturating_mul(2), decade.saturating_mul(5)] {
                let steps = most.div_euclid(step) + i64::from(most % step > 0);
                if steps <= MOST_STEPS {
                    return Scale { step, steps };
                }
            }
            decade = decade.saturating_mul(10);
        }
    }

    /// The marks of the scale, from the top to zero.
    pub(super) fn ticks(&self) -> impl Iterator<Item = i64> + '_ {
        (0..=self.steps).rev().map(|at| at.saturating_mul(self.step))
    }

    /// Height of a value from the top of the picture.
    pub(super) fn y(&self, value: i64) -> f64 {
        let top = self.step as f64 * self.steps as f64;
        HEIGHT - (value.max(0) as f64 / top * HEIGHT).min(HEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_begin_at_zero_and_end_at_round_numbers() {
        for (most, ticks) in [
            (-1, vec![1, 0]),
            (0, vec![1, 0]),
            (1, vec![1, 0]),
            (4, vec![4, 3, 2, 1, 0]),
            (5, vec![6, 4, 2, 0]),
            (9, vec![10, 5, 0]),
            (41, vec![60, 40, 20, 0]),
            (1000, vec![1000, 500, 0]),
        ] {
            assert_eq!(Scale::to(most).ticks().collect::<Vec<_>>(), ticks, "{most}");
        }
        let scale = Scale::to(4);
        assert_eq!((scale.y(0), scale.y(4), scale.y(1), scale.y(-3), scale.y(9)), (100.0, 0.0, 75.0, 100.0, 0.0));
        assert!(Scale::to(i64::MAX).y(i64::MAX) < 50.0);
    }
}
