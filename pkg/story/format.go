package story

import (
	"fmt"
	"math"
	"time"
)

// Text formats a duration for people: three digits that matter, and none below resolution.
func Text(d, resolution time.Duration) string {
	if d < 0 {
		return "-" + Text(-d, resolution)
	}
	if d < resolution {
		return "<" + Text(resolution, resolution)
	}
	if d == 0 {
		return "0"
	}
	whole := resolution >= time.Second
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	case d < 999500*time.Nanosecond:
		return fmt.Sprintf("%.0fµs", float64(d)/float64(time.Microsecond))
	case d < 9995*time.Microsecond:
		return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
	case d < 99950*time.Microsecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond))
	case d < 9995*time.Millisecond && !whole:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < 59950*time.Millisecond && !whole:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	s := int64(math.Round(d.Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

// Percent formats a share. A share that is small but not nothing is "<1%".
func Percent(share float64) string {
	if share > 0 && share < 0.01 {
		return "<1%"
	}
	return fmt.Sprintf("%.0f%%", share*100)
}

// plural is a number of things: "1 pod", "2 pods".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Signed formats a change: "+120ms", "-1.20s".
func Signed(d, resolution time.Duration) string {
	if d > 0 {
		return "+" + Text(d, resolution)
	}
	return Text(d, resolution)
}
