package ha

import "sync"

// watchers tells any number of listeners that something has changed. It keeps
// no queue: a listener that is late sees one notice for many changes.
type watchers struct {
	mu   sync.Mutex
	subs map[chan struct{}]struct{}
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.subs {
		select {
		case ch <- struct{}{}:
		default: // a notice is waiting already
		}
	}
}

func (w *watchers) watch() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.subs == nil {
		w.subs = map[chan struct{}]struct{}{}
	}
	w.subs[ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subs, ch)
	}
}
