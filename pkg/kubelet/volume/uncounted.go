package volume

import "time"

// uncounted is where nobody counts.
type uncounted struct{}

var _ Metrics = uncounted{}

func (uncounted) VolumeWork(string, string, time.Duration, error) {}
func (uncounted) VolumeThere(string, time.Duration)               {}
func (uncounted) VolumeMeasured(string, time.Duration)            {}
func (uncounted) VolumesSwept(int, int)                           {}
