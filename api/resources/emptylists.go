package resources

// NilIfEmpty makes an empty list none. Kubernetes' storage does not tell them apart, so a list that JSON always shows is null also where the client wrote
// []. Strategies ask for it as they prepare a write, and not as a default: who wrote the empty list manages the field.
func NilIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
