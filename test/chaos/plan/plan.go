package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds. Faults of a node are of the leader or of another, as Target says when
// the fault begins.
const (
	KillNode      Kind = "kill -9 of a node"
	StopNode      Kind = "SIGTERM of a node"
	PauseNode     Kind = "SIGSTOP of a node beyond the lease"
	SleepNode     Kind = "SIGSTOP of a node beyond the transaction timeout"
	CutPeers      Kind = "a node cut from its peers"
	CutOnePeer    Kind = "a node cut from one peer"
	CutSource     Kind = "a node cut from MySQL"
	ResetSource   Kind = "a node's connections to MySQL reset"
	CutKafka      Kind = "a node cut from Kafka"
	ResetKafka    Kind = "a node's connections to Kafka reset"
	SlowKafka     Kind = "a slow network towards Kafka"
	LateRequests  Kind = "EndTxn delayed past a cut connection, or repeated"
	LostRequests  Kind = "requests to Kafka lost, delayed and repeated"
	StallRequests Kind = "EndTxn and InitProducerId held beyond the client's patience"
	KillBroker    Kind = "kill -9 of a broker"
	PauseBroker   Kind = "SIGSTOP of a broker"
	KillMySQL     Kind = "kill -9 of mysqld"
	PauseMySQL    Kind = "SIGSTOP of mysqld"
	SwitchSource  Kind = "switch-over of the source"
	FullDisk      Kind = "a full disk under a node"
	// SleepBroker lasts longer than the controller waits for a broker.
	SleepBroker  Kind = "SIGSTOP of a broker beyond its session"
	Leaderless   Kind = "a partition without a leader, and a take-over meanwhile"
	SlowBrokers  Kind = "a quota for producers"
	SilentHosts  Kind = "MySQL or the brokers swallow a node's packets"
	ChangeTables Kind = "other tables in mid-transaction"
	Strangers    Kind = "300 strangers at a node's peer port"
	// Outage is in no plan that a seed makes.
	Outage Kind = "MySQL and all brokers gone at once"
)

// spec says how often a kind comes and how long it lasts.
type spec struct {
	kind        Kind
	weight      int
	least, most time.Duration
	// group keeps kinds that undo each other apart.
	group string
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

func specs() []spec {
	return []spec{
		{KillNode, 8, 200 * ms, 2 * sec, "node"}, {StopNode, 5, 100 * ms, sec, "node"}, {PauseNode, 7, sec, 4 * sec, "node"},
		{SleepNode, 1, 12 * sec, 15 * sec, "node"},
		{CutPeers, 4, 500 * ms, 4 * sec, "peers"}, {CutOnePeer, 2, 500 * ms, 4 * sec, "peers"},
		{CutSource, 3, 500 * ms, 5 * sec, "source"}, {ResetSource, 3, 0, 0, "source"},
		{CutKafka, 3, 500 * ms, 5 * sec, "kafka"}, {ResetKafka, 3, 0, 0, "kafka"}, {SlowKafka, 2, sec, 4 * sec, "kafka"},
		{LateRequests, 6, 2 * sec, 6 * sec, "requests"}, {LostRequests, 4, 2 * sec, 6 * sec, "requests"},
		{StallRequests, 2, 2 * sec, 4 * sec, "requests"},
		{KillBroker, 3, 200 * ms, 2 * sec, "broker"}, {PauseBroker, 3, 500 * ms, 5 * sec, "broker"},
		{KillMySQL, 2, 200 * ms, 2 * sec, "mysql"}, {PauseMySQL, 2, 500 * ms, 4 * sec, "mysql"},
		{SwitchSource, 2, 0, 0, "mysql"}, {FullDisk, 2, sec, 4 * sec, "disk"},
		{SleepBroker, 3, 4 * sec, 7 * sec, "broker"}, {Leaderless, 4, sec, 4 * sec, "broker"},
		{SlowBrokers, 3, 3 * sec, 8 * sec, "quota"},
		{SilentHosts, 3, 2 * sec, 7 * sec, "kafka"}, {ChangeTables, 3, 200 * ms, sec, "node"},
		{Strangers, 3, 2 * sec, 6 * sec, "peers"},
	}
}

// Target says which node a fault is for.
type Target uint8

// The targets.
const (
	Leader Target = iota
	Other
)

// String names the target.
func (t Target) String() string {
	if t == Leader {
		return "leader"
	}
	return "other"
}

// Step is one fault: it begins At after the run's start and lasts For.
type Step struct {
	At, For time.Duration
	Kind    Kind
	Target  Target
	// Number chooses among brokers, peers and others.
	Number int
}

// String is one line of a plan.
func (s Step) String() string {
	return fmt.Sprintf("%7.1fs  %-5.1fs %s (%v, %d)", s.At.Seconds(), s.For.Seconds(), s.Kind, s.Target, s.Number)
}

// End is when the fault is over.
func (s Step) End() time.Duration { return s.At + s.For }

// Options say what a run has to offer to faults.
type Options struct {
	Length time.Duration
	// Calm is the time without faults in each Minute of the run and at its end.
	Calm, Minute time.Duration
	// Without are kinds that the run can't do.
	Without []Kind
	// Rush asks for as many takeovers as possible: faults of the leader alone, one
	// every few seconds, each with one beside it that a takeover has to do with.
	Rush bool
}

// Kinds are all kinds that plans are made of.
func Kinds() (kinds []Kind) {
	for _, s := range specs() {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

// rushed are the kinds of a rush: those that nearly always cost the leadership, or
// the epoch.
func rushed() []Kind { return []Kind{KillNode, StopNode, PauseNode, LateRequests} }

// beside are the kinds that come together with those.
func beside() []Kind {
	return []Kind{SleepBroker, Leaderless, SlowBrokers, SilentHosts, ChangeTables, Strangers}
}

// but are all kinds without some, and those that a run can't do.
func but(kinds, unable []Kind) []Kind {
	return append(slices.DeleteFunc(Kinds(), func(k Kind) bool { return slices.Contains(kinds, k) }), unable...)
}

// DefaultOptions are those of a run of the given length.
func DefaultOptions(length time.Duration) Options {
	return Options{Length: length, Calm: 12 * sec, Minute: time.Minute}
}

// Plan is what happens in a run.
type Plan struct {
	Seed  uint64
	Steps []Step
}

// String prints the plan, one step a line.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan of seed %d:\n", p.Seed)
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %v\n", s)
	}
	return b.String()
}

// Make makes the plan of a seed: rounds of 4 to 9 seconds, each with up to three
// faults at a time, and calm windows in between.
func Make(seed uint64, o Options) Plan {
	random := rand.New(rand.NewPCG(seed, 3))
	p := Plan{Seed: seed}
	least, most := 4*sec, 9*sec
	if o.Rush {
		least, most = 2500*ms, 4500*ms
	}
	for at := 2 * sec; at < o.Length-o.Calm; {
		if in := at % o.Minute; in > o.Minute-o.Calm {
			at += o.Minute - in // calm
			continue
		}
		length := between(random, least, most)
		room := min(o.Length-o.Calm-at, o.Minute-o.Calm-at%o.Minute)
		round := round(random, at, room, o)
		p.Steps = append(p.Steps, round...)
		for _, s := range round {
			length = max(length, s.End()-at+sec)
		}
		at += length
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return p
}

// round draws the faults of one round: mostly one, sometimes none, two or three.
func round(random *rand.Rand, at, room time.Duration, o Options) (steps []Step) {
	counts := []int{0, 1, 1, 1, 1, 2, 2, 2, 3, 3}
	without := make([][]Kind, counts[random.IntN(len(counts))])
	for i := range without {
		without[i] = o.Without
	}
	if o.Rush {
		without = [][]Kind{but(rushed(), o.Without), but(beside(), o.Without)}
	}
	taken := map[string]bool{}
	for _, kinds := range without {
		s, ok := draw(random, kinds)
		if !ok {
			continue
		}
		step := Step{
			At: at + between(random, 0, 1500*ms), For: between(random, s.least, s.most), Kind: s.kind,
			Number: random.IntN(1 << 16),
		}
		if random.IntN(10) >= 7 && !o.Rush {
			step.Target = Other
		}
		if taken[s.group] || step.End() > at+room {
			continue // this round has less
		}
		taken[s.group] = true
		steps = append(steps, step)
	}
	return steps
}

// draw draws a kind by its weight; ok is false when none is left.
func draw(random *rand.Rand, without []Kind) (_ spec, ok bool) {
	all := slices.DeleteFunc(specs(), func(s spec) bool { return slices.Contains(without, s.kind) })
	sum := 0
	for _, s := range all {
		sum += s.weight
	}
	if sum == 0 {
		return spec{}, false
	}
	x := random.IntN(sum)
	for _, s := range all {
		if x < s.weight {
			return s, true
		}
		x -= s.weight
	}
	return all[0], true
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(random.Int64N(int64(most-least)))
}
