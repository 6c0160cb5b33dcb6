package podcontrol

import "sync"

// slowStart calls f n times in batches of 1, 2, 4, … and stops after the first batch with an error, so that a hopeless
// template costs few requests. i counts from 0. It returns how many calls were made, and the first error.
func slowStart(n int, f func(i int) error) (int, error) {
	called := 0
	for size := 1; called < n; size *= 2 {
		batch, first := min(size, n-called), called
		called += batch
		if err := Together(batch, func(i int) error { return f(first + i) }); err != nil {
			return called, err
		}
	}
	return called, nil
}

// Together calls f for 0..n-1 at once and returns the first error in their order: the others say the same.
func Together(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
