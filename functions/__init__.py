"""The Lambdas: from the landing bucket's event to main, or to the people who must know."""
