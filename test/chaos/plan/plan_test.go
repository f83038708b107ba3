package plan

import (
	"slices"
	"testing"
	"time"
)

func TestTheSameSeedIsTheSamePlan(t *testing.T) {
	o := DefaultOptions(10 * time.Minute)
	if a, b := Make(7, o).String(), Make(7, o).String(); a != b {
		t.Errorf("two plans of one seed:\n%s%s", a, b)
	}
	if a, b := Make(7, o), Make(8, o); a.String() == b.String() {
		t.Error("two seeds have one plan")
	}
}

func TestPlans(t *testing.T) {
	kinds := map[Kind]int{}
	targets := map[Target]int{}
	for seed := range uint64(200) {
		o := DefaultOptions(5 * time.Minute)
		o.Without = []Kind{FullDisk}
		p := Make(seed, o)
		if len(p.Steps) < 20 {
			t.Errorf("seed %d has %d faults in five minutes", seed, len(p.Steps))
		}
		for i, s := range p.Steps {
			kinds[s.Kind]++
			targets[s.Target]++
			if i > 0 && s.At < p.Steps[i-1].At {
				t.Fatalf("seed %d: steps are not in order", seed)
			}
			// Jitter of up to 1.5 s included.
			if s.End() > o.Length-o.Calm+2*sec {
				t.Errorf("seed %d: %v is in the calm at the end", seed, s)
			}
			if in := s.At % o.Minute; in > o.Minute-o.Calm+2*sec {
				t.Errorf("seed %d: %v is in a calm window", seed, s)
			}
			at := 0
			for _, other := range p.Steps {
				if other.At <= s.At && s.At < other.End() {
					at++
				}
			}
			if at > 3 {
				t.Errorf("seed %d: %d faults at a time", seed, at)
			}
		}
	}
	for _, s := range specs() {
		if n := kinds[s.kind]; (n == 0) != (s.kind == FullDisk) {
			t.Errorf("%d of %q in 200 plans", n, s.kind)
		}
	}
	if targets[Leader] < targets[Other] {
		t.Errorf("targets are %v: the leader should be hit more often", targets)
	}
}

func TestRush(t *testing.T) {
	o := DefaultOptions(10 * time.Minute)
	o.Rush = true
	p := Make(3, o)
	if len(p.Steps) < 80 {
		t.Errorf("%d faults in ten minutes", len(p.Steps))
	}
	want := append(rushed(), beside()...)
	kinds := map[Kind]int{}
	for _, s := range p.Steps {
		kinds[s.Kind]++
		if s.Target != Leader || !slices.Contains(want, s.Kind) {
			t.Errorf("%v is not of the leader", s)
		}
	}
	for _, k := range want {
		if kinds[k] == 0 {
			t.Errorf("no %q in ten minutes", k)
		}
	}
}
