package router

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// What the topic rewriting may take and keep.
const (
	maxTopicLength = 249 // Kafka's limit
	maxTopicCache  = 4096
	regexTimeout   = time.Second // for expressions that backtrack without end
)

// topics rewrites route values into topic names as Kafka Connect's RegexRouter
// does: when the expression matches the whole value, the first match of a fresh
// search is replaced; otherwise the value is the topic. It is safe for concurrent
// use.
type topics struct {
	whole, find *regexp2.Regexp // nil when prefix says it all
	replacement []segment
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

// segment is a piece of a replacement: a literal, or a group when group >= 0.
type segment struct {
	literal string
	group   int
}

func newTopics(pattern, replacement string) (*topics, error) {
	re, err := translateJavaRegex(pattern)
	if err != nil {
		return nil, fmt.Errorf("route.topic.regex: %w", err)
	}
	segments, err := parseReplacement(replacement, re)
	if err != nil {
		return nil, fmt.Errorf("route.topic.replacement: %w", err)
	}
	t := &topics{replacement: segments, cache: make(map[string]topicResult)}
	if t.whole, err = regexp2.Compile(`\A(?:`+re.pattern+`)\z`, regexp2.None); err != nil {
		return nil, fmt.Errorf("route.topic.regex: %w", err)
	}
	if t.find, err = regexp2.Compile(re.pattern, regexp2.None); err != nil {
		return nil, fmt.Errorf("route.topic.regex: %w", err)
	}
	t.whole.MatchTimeout, t.find.MatchTimeout = regexTimeout, regexTimeout
	t.prefix, t.simple = simpleForm(pattern, re, segments)
	return t, nil
}

// simpleForm recognises the default and its kin: (.*) or (?<name>.*) with a
// replacement of a literal and that group.
func simpleForm(pattern string, re javaRegex, segments []segment) (prefix string, ok bool) {
	inner, isGroup := strings.CutSuffix(pattern, ".*)")
	if !isGroup || inner != "(" && (!strings.HasPrefix(inner, "(?<") || len(re.names) != 1) {
		return "", false
	}
	switch {
	case len(segments) == 1 && segments[0].group >= 0:
		return "", true
	case len(segments) == 2 && segments[0].group < 0 && segments[1].group >= 0:
		return segments[0].literal, true
	default:
		return "", false
	}
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
	matched, err := t.whole.MatchString(value)
	if err != nil {
		return "", errRegexTime
	}
	if !matched {
		return strings.Clone(value), nil
	}
	m, err := t.find.FindStringMatch(value)
	if err != nil {
		return "", errRegexTime
	}
	if m == nil {
		return strings.Clone(value), nil
	}
	runes := []rune(value)
	var b strings.Builder
	b.WriteString(string(runes[:m.Index]))
	for _, s := range t.replacement {
		if s.group < 0 {
			b.WriteString(s.literal)
		} else if g := m.GroupByNumber(s.group); g != nil {
			b.WriteString(g.String())
		}
	}
	b.WriteString(string(runes[m.Index+m.Length:]))
	return b.String(), nil
}

var errRegexTime = errors.New("matching route.topic.regex took more than a second")

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

// parseReplacement reads a Java replacement string: ${name}, $n with as many
// digits as make a group that exists, and \ before a literal character.
func parseReplacement(s string, re javaRegex) ([]segment, error) {
	var out []segment
	literal := strings.Builder{}
	flush := func() {
		if literal.Len() > 0 {
			out = append(out, segment{literal.String(), -1})
			literal.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New("the character to be escaped is missing")
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			literal.WriteString(s[i : i+n])
			i += n
		case '$':
			group, n, err := groupReference(s[i+1:], re)
			if err != nil {
				return nil, err
			}
			flush()
			out = append(out, segment{group: group})
			i += 1 + n
		default:
			literal.WriteByte(c)
			i++
		}
	}
	flush()
	return out, nil
}

// groupReference reads what follows a dollar sign; n is its length.
func groupReference(s string, re javaRegex) (group, n int, err error) {
	if s == "" {
		return 0, 0, errors.New("illegal group reference: group index is missing")
	}
	if s[0] == '{' {
		end := 1
		for end < len(s) && isGroupNameByte(s[end], end == 1) {
			end++
		}
		if end == 1 || end == len(s) || s[end] != '}' {
			return 0, 0, errors.New("named capturing group is missing trailing '}' or its name")
		}
		number, ok := re.names[s[1:end]]
		if !ok {
			return 0, 0, fmt.Errorf("no group with name %q", s[1:end])
		}
		return number, end + 1, nil
	}
	if s[0] < '0' || s[0] > '9' {
		return 0, 0, errors.New("illegal group reference")
	}
	group = int(s[0] - '0')
	if group > re.groups {
		return 0, 0, fmt.Errorf("no group %d", group)
	}
	for n = 1; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		next := group*10 + int(s[n]-'0')
		if next > re.groups {
			break
		}
		group = next
	}
	return group, n, nil
}

func isGroupNameByte(c byte, first bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}
