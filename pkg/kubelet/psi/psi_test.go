package psi

import "testing"

func TestParse(t *testing.T) {
	t.Parallel()
	got := Parse("some avg10=5.77 avg60=3.21 avg300=0.85 total=67306469\nfull avg10=1.00 avg60=0.50 avg300=0.25 total=7\n")
	want := Pressure{Some: Stall{5.77, 3.21, 0.85, 67306469}, Full: Stall{1, 0.5, 0.25, 7}}
	if got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Linux 5.10 has no line "full" for the CPU.
	if got := Parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"); got == nil || got.Some.Total != 3 ||
		got.Full != (Stall{}) {
		t.Errorf("%+v", got)
	}
	for _, none := range []string{"", "\n", "other total=3\n"} {
		if got := Parse(none); got != nil {
			t.Errorf("%q: %+v", none, got)
		}
	}
}
