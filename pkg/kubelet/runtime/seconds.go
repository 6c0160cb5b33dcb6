package runtime

import "time"

// century is longer than anything that a node waits for, and leaves a time.Duration room to be added to another.
const century = 100 * 365 * 24 * 60 * 60

// Seconds is as many seconds as a pod or a client asked for, a century at most: they may ask for more than a
// time.Duration can hold.
func Seconds(n int64) time.Duration {
	return time.Duration(max(min(n, century), -century)) * time.Second
}
