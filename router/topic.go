package router

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// What the topic rewriting may take and keep.
const (
	maxTopicLength = 249 // Kafka's limit
	maxTopicCache  = 4096
)

// topics rewrites route values into topic names as Kafka Connect's RegexRouter
// does: when the expression matches the whole value, the first match of a fresh
// search is replaced; otherwise the value is the topic. It is safe for concurrent
// use.
type topics struct {
	replacement *javaregex.Replacement
	// prefix is set for ".*" as one group and a replacement that ends with that
	// group: then a value without line ends just gets the prefix.
	prefix string
	simple bool

	mu    sync.RWMutex
	cache map[string]topicResult
}

type topicResult struct {
	name    string
	problem string
}

func newTopics(pattern, replacement string) (*topics, error) {
	re, err := javaregex.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("route.topic.regex: %w", err)
	}
	t := &topics{cache: make(map[string]topicResult)}
	if t.replacement, err = re.Replacement(replacement); err != nil {
		return nil, fmt.Errorf("route.topic.replacement: %w", err)
	}
	t.prefix, t.simple = t.replacement.Prefix(pattern)
	return t, nil
}

// name returns the topic for a route value.
func (t *topics) name(value string) (string, error) {
	t.mu.RLock()
	res, ok := t.cache[value]
	t.mu.RUnlock()
	if !ok {
		var err error
		if res, err = t.resolve(value); err != nil {
			return "", err
		}
		t.keep(value, res)
	}
	if res.problem != "" {
		return "", errors.New(res.problem)
	}
	return res.name, nil
}

func (t *topics) keep(value string, res topicResult) {
	if len(value) > maxTopicLength {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.cache) >= maxTopicCache {
		clear(t.cache)
	}
	t.cache[strings.Clone(value)] = res
}

func (t *topics) resolve(value string) (topicResult, error) {
	name, err := t.rewrite(value)
	if err != nil {
		return topicResult{}, err
	}
	return topicResult{name: name, problem: topicProblem(name)}, nil
}

func (t *topics) rewrite(value string) (string, error) {
	if t.simple && !hasLineEnd(value) {
		return t.prefix + value, nil
	}
	name, matched, err := t.replacement.Replace(value)
	if err != nil {
		return "", fmt.Errorf("route.topic.regex: %w", err)
	}
	if !matched {
		return strings.Clone(value), nil
	}
	return name, nil
}

// hasLineEnd reports what Java's dot does not match.
func hasLineEnd(s string) bool {
	if !utf8.ValidString(s) {
		return true // left to the expression itself
	}
	return strings.ContainsAny(s, "\n\r\u0085\u2028\u2029")
}

// topicProblem says why Kafka takes no topic of this name (org.apache.kafka.common.internals.Topic);
// empty when it does. It never quotes the name: it comes from a row.
func topicProblem(name string) string {
	switch {
	case name == "":
		return "the topic name is empty"
	case name == "." || name == "..":
		return "the topic name is a dot or two"
	case len(name) > maxTopicLength:
		return fmt.Sprintf("the topic name is %d bytes long, Kafka takes %d", len(name), maxTopicLength)
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		default:
			return fmt.Sprintf("the topic name holds %U, Kafka takes only letters, digits, '.', '_' and '-'", r)
		}
	}
	return ""
}
