package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/eapache/go-resiliency/breaker"
)

// Code is the stable name of a kind of failure, for statuses, metrics and alerts.
type Code string

// The codes. Those whose comment says "retry" come with Error.Retry true: the
// next session may well succeed without anybody doing anything.
const (
	// Unreachable: no broker answers, or the connection was cut. Retry.
	Unreachable Code = "unreachable"
	// Timeout: Kafka answers, but not in time. Retry.
	Timeout Code = "timeout"
	// Unavailable: a partition has no leader, too few replicas in sync, a
	// coordinator is moving, or a topic can't be created with so few brokers. Retry.
	Unavailable Code = "unavailable"
	// TLSFailed: the TLS handshake failed or its files can't be read. Retry,
	// since files are read again at each connect.
	TLSFailed Code = "tls_failed"
	// AuthFailed: the broker refuses the credentials, or they can't be had.
	// Retry, since they are read again at each connect.
	AuthFailed Code = "auth_failed"
	// NotAuthorized: a right is missing. Retry, since rights are changed on the
	// broker without us being told.
	NotAuthorized Code = "not_authorized"
	// TopicMissing: the topic does not exist and is not to be created. Retry:
	// the connector waits for it, and order is kept.
	TopicMissing Code = "topic_missing"
	// TopicInvalid: Kafka refuses the topic's name or its settings. No retry.
	TopicInvalid Code = "topic_invalid"
	// PartitionOutOfRange: the record asks for a partition that the topic does
	// not have. No retry.
	PartitionOutOfRange Code = "partition_out_of_range"
	// RecordTooLarge: the record is larger than the client's or the topic's
	// limit. No retry.
	RecordTooLarge Code = "record_too_large"
	// BatchTooLarge: small records were refused because together they were too
	// large for the topic. Retry: the next session sends smaller batches.
	BatchTooLarge Code = "batch_too_large"
	// RecordInvalid: the broker refuses the record for what it is, for example a
	// null key in a compacted topic or a timestamp out of bounds. No retry.
	RecordInvalid Code = "record_invalid"
	// Fenced: another writer has taken over. Retry if this node still leads.
	Fenced Code = "fenced"
	// ProducerState: the broker and the producer disagree on sequence numbers or
	// transactions; a new producer begins afresh. Retry.
	ProducerState Code = "producer_state"
	// Unsupported: the brokers are too old for what is asked. No retry.
	Unsupported Code = "unsupported"
	// PositionUnreadable: the stored position can't be understood. No retry.
	PositionUnreadable Code = "position_unreadable"
	// TransactionHanging: Kafka has ended a transaction and left it open in a
	// partition, and what is to become of it can't be decided. No retry.
	TransactionHanging Code = "transaction_hanging"
	// SettingRefused: the brokers refuse a setting of the connector. No retry.
	SettingRefused Code = "setting_refused"
	// SinkClosed: the sink was used after an error or before Open. Retry.
	SinkClosed Code = "sink_closed"
	// Unknown: anything else. Retry.
	Unknown Code = "unknown"
)

// Error is what the sinks return for everything that is Kafka's doing. Errors of
// the caller's context are returned as they are.
type Error struct {
	Code Code
	// Topic and Partition say where; empty and -1 when that isn't known.
	Topic     string
	Partition int32
	// Group is the index in Batch.Groups of the transaction whose record is to
	// blame; -1 when no single record is.
	Group int
	// Record is the index in Group.Records of that record; -1 when it is not known.
	Record int
	// Poison says that the refusal is for good and about this record alone: the others
	// of the batch would be taken without it. Record is then known.
	Poison bool
	// Retry says whether the same batch may succeed in a new session without
	// anybody changing the batch or the configuration.
	Retry bool
	// Text says what happened and what to do, without payloads or secrets.
	Text string
	// Err is the cause; may be nil.
	Err error
}

// Error returns code, place, text and cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("kafka: ")
	if e.Topic != "" {
		b.WriteString("topic " + strconv.Quote(e.Topic))
		if e.Partition >= 0 {
			b.WriteString(" partition " + strconv.Itoa(int(e.Partition)))
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Text)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	b.WriteString(" (" + string(e.Code) + ")")
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same batch may succeed in a new session.
func (e *Error) Retryable() bool { return e.Retry }

// ErrCode is the code for status and metrics.
func (e *Error) ErrCode() string { return string(e.Code) }

// retryable holds the codes that come with Retry.
func retryable(c Code) bool {
	switch c {
	case TopicInvalid, PartitionOutOfRange, RecordTooLarge, RecordInvalid, Unsupported, PositionUnreadable,
		TransactionHanging, SettingRefused:
		return false
	}
	return true
}

func newError(code Code, text string, err error) *Error {
	return &Error{Code: code, Partition: -1, Group: -1, Record: -1, Retry: retryable(code), Text: text, Err: err}
}

// rule is one line of the translation from sarama's errors to ours.
type rule struct {
	code Code
	text string
	of   []error
}

// rules are tried from top to bottom; the first match wins.
func rules() []rule {
	return []rule{
		{Fenced, "another writer has taken over this connector's transactional id; this one stops", []error{
			sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch, sarama.ErrInvalidProducerIDMapping}},
		{RecordTooLarge, "the record is too large for the topic: raise max.message.bytes of the topic or message.max.bytes " +
			"of the brokers, or write smaller events", []error{
			sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge}},
		{AuthFailed, "the broker refuses the credentials: check user, password or token, and the SASL mechanism", []error{
			sarama.ErrSASLAuthenticationFailed, sarama.ErrUnsupportedSASLMechanism, sarama.ErrIllegalSASLState}},
		{NotAuthorized, "a right is missing: WRITE and DESCRIBE on the topic are needed", []error{
			sarama.ErrTopicAuthorizationFailed}},
		{NotAuthorized, "a right is missing: IDEMPOTENT_WRITE on the cluster is needed (brokers before 3.0), CREATE to " +
			"create topics", []error{
			sarama.ErrClusterAuthorizationFailed}},
		{NotAuthorized, "a right is missing: WRITE and DESCRIBE on the transactional id are needed", []error{
			sarama.ErrTransactionalIDAuthorizationFailed}},
		{NotAuthorized, "a right is missing", []error{sarama.ErrGroupAuthorizationFailed}},
		{TopicMissing, "waiting for the topic to exist: create it, or let the connector create topics", []error{
			sarama.ErrUnknownTopicOrPartition}},
		{TopicInvalid, "Kafka refuses the topic: correct the routing or the creation settings", []error{
			sarama.ErrInvalidTopic, sarama.ErrInvalidPartitions,
			sarama.ErrInvalidConfig, sarama.ErrInvalidReplicaAssignment, sarama.ErrPolicyViolation}},
		// Brokers that have just been started register one after the other.
		{Unavailable, "there are fewer brokers than the topic is to have replicas: start the others, or lower the " +
			"replication factor", []error{
			sarama.ErrInvalidReplicationFactor}},
		{Unavailable, "the brokers create topics no faster than a quota lets them (controller_mutation_rate); the next " +
			"attempt goes on with the others", []error{
			sarama.ErrThrottlingQuotaExceeded}},
		{PartitionOutOfRange, "the record asks for a partition that the topic does not have", []error{
			sarama.ErrInvalidPartition}},
		{RecordInvalid, "the broker refuses the record; a compacted topic needs keys, and timestamps must lie within the " +
			"topic's bounds", []error{
			sarama.ErrInvalidRecord, sarama.ErrInvalidTimestamp}},
		{ProducerState, "the broker lost or rejects the producer's state; a new producer begins afresh", []error{
			sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidTxnState,
			sarama.ErrTransactionNotReady, sarama.ErrDuplicateSequenceNumber}},
		{Unsupported, "the brokers do not support what is asked of them", []error{
			sarama.ErrUnsupportedVersion, sarama.ErrUnsupportedForMessageFormat}},
		{Unavailable, "the partition or its coordinator is not available at the moment", []error{
			sarama.ErrNotEnoughReplicas, sarama.ErrNotEnoughReplicasAfterAppend, sarama.ErrLeaderNotAvailable,
			sarama.ErrNotLeaderForPartition, sarama.ErrKafkaStorageError, sarama.ErrConsumerCoordinatorNotAvailable,
			sarama.ErrNotCoordinatorForConsumer, sarama.ErrConcurrentTransactions, sarama.ErrOffsetsLoadInProgress,
			sarama.ErrControllerNotAvailable, sarama.ErrReplicaNotAvailable}},
		{Timeout, "Kafka did not answer in time", []error{
			sarama.ErrRequestTimedOut, context.DeadlineExceeded}},
	}
}

// classify turns an error of sarama, of the network or of our own dialer into an
// *Error. It returns nil for nil and an *Error that is already in the chain as it
// is, with doing in front of its text.
func classify(doing string, err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		c := *e
		return &c
	}
	for _, r := range rules() {
		for _, target := range r.of {
			if errors.Is(err, target) {
				return newError(r.code, doing+": "+r.text, describe(err))
			}
		}
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return newError(Timeout, doing+": Kafka did not answer in time", err)
	}
	if isConnectionError(err) {
		return newError(Unreachable, doing+": no broker can be reached or the connection was lost", err)
	}
	return newError(Unknown, doing, describe(err))
}

// isConnectionError reports whether err is about reaching a broker at all.
func isConnectionError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	if errors.As(err, &op) || errors.As(err, &dns) {
		return true
	}
	for _, target := range []error{
		sarama.ErrOutOfBrokers, sarama.ErrNotConnected, sarama.ErrBrokerNotFound, sarama.ErrBrokerNotAvailable,
		sarama.ErrNetworkException, sarama.ErrClosedClient, sarama.ErrShuttingDown, sarama.ErrIncompleteResponse,
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, breaker.ErrBreakerOpen, errStopped,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// describe names a broker's error code: sarama's own text for the newer ones is
// "Unknown error, how did this happen?".
func describe(err error) error {
	var k sarama.KError
	if !errors.As(err, &k) {
		return err
	}
	switch k {
	case sarama.ErrProducerFenced:
		return fmt.Errorf("PRODUCER_FENCED [%w]", err)
	case sarama.ErrInvalidProducerEpoch:
		return fmt.Errorf("INVALID_PRODUCER_EPOCH [%w]", err)
	case sarama.ErrInvalidTxnState:
		return fmt.Errorf("INVALID_TXN_STATE [%w]", err)
	}
	return err
}

// followsAnother reports whether err is what sarama says of records that went
// down with an earlier one. Such an error is never the cause.
func followsAnother(err error) bool {
	return errors.Is(err, sarama.ErrShuttingDown) ||
		errors.Is(err, sarama.ErrTransactionNotReady) ||
		errors.Is(err, sarama.ErrClosedClient) ||
		errors.Is(err, sarama.ErrTransitionNotAllowed) ||
		errors.Is(err, breaker.ErrBreakerOpen) ||
		errors.Is(err, errStopped)
}
