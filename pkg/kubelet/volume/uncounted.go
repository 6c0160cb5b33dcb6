package volume

import "time"

// uncounted is the Metrics of a Manager without any.
type uncounted struct{}

var _ Metrics = uncounted{}

func (uncounted) VolumeWork(string, string, time.Duration, error) {}
func (uncounted) VolumeThere(string, time.Duration)               {}
func (uncounted) VolumeMeasured(string, time.Duration)            {}
func (uncounted) VolumesSwept(int, int)                           {}
