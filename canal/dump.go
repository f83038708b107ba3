package canal

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// dump is a connection on which the server sends its binlog, as to a replica.
// go-mysql logs in; the packets that follow are read here, without a copy, an
// allocation or an object for each: its own reader costs more than all that is done
// with most events.
type dump struct {
	*session
	done chan struct{} // closed when the reading has ended
	err  error         // why it has; read after done
	// toEnd says that the server ends the dump at the end of its binlog.
	toEnd bool
}

// startDump logs in, has same look at the connection, and asks for the binlog.
// waiting is asked, after each silence of cfg.readTimeout before found is called,
// whether to go on: a server may take long to find the place, and says nothing then.
func startDump(cfg Config, d *dialer, flavor position.Flavor, from position.Position, same func(*session) error,
	waiting func() bool) (*dump, error) {
	// Two heartbeats may get lost, no more.
	s, err := login(context.Background(), cfg, d, cfg.readTimeout(),
		map[string]string{"_client_role": "binary_log_listener"})
	if err != nil {
		return nil, err
	}
	s.wire.read.Store(int64(max(cfg.ConnectTimeout, cfg.readTimeout())))
	out := &dump{session: s, done: make(chan struct{}), toEnd: cfg.toEnd}
	if err := out.request(cfg, flavor, from, same); err != nil {
		_ = s.conn.Close() // nothing was asked for yet
		return nil, err
	}
	s.wire.allowAll() // run looks after what comes
	s.wire.patient = waiting
	s.wire.read.Store(int64(cfg.readTimeout()))
	return out, nil
}

// found ends the patience: the place is found, and from now on heartbeats come. It is
// called by what run calls.
func (d *dump) found() { d.wire.patient = nil }

func (d *dump) request(cfg Config, flavor position.Flavor, from position.Position, same func(*session) error) error {
	if err := same(d.session); err != nil {
		return err
	}
	if err := d.introduce(cfg, flavor); err != nil {
		return err
	}
	switch {
	case !from.HasGTID():
		return d.askFile(cfg, from)
	case flavor == position.MariaDB:
		// The file and offset of the command do not count then. Strict mode is what
		// makes MariaDB refuse a position that it does not have.
		for _, set := range []string{fmt.Sprintf("SET @slave_connect_state='%s'", from.Set),
			"SET @slave_gtid_strict_mode=1"} {
			if _, err := d.execute(set); err != nil {
				return err
			}
		}
		return d.command(mysql.COM_BINLOG_DUMP, dumpFile(0, cfg.dumpFlags(), cfg.ServerID, ""))
	default:
		return d.askSet(cfg, flavor, from)
	}
}

// introduce says what kind of replica asks: one that needs no checksums, knows
// MariaDB's GTIDs, and wants heartbeats.
func (d *dump) introduce(cfg Config, flavor position.Flavor) error {
	id, err := uuid.NewUUID()
	if err != nil {
		return fmt.Errorf("making up an identity: %w", err)
	}
	settings := []string{"SET @master_binlog_checksum='NONE', @source_binlog_checksum='NONE'"}
	if flavor == position.MariaDB {
		settings = append(settings, "SET @mariadb_slave_capability=4") // it understands GTIDs
	}
	if period := cfg.Heartbeat.Nanoseconds(); period > 0 {
		settings = append(settings, fmt.Sprintf("SET @master_heartbeat_period = %d, @source_heartbeat_period = %d", period,
			period))
	}
	for _, set := range append(settings, fmt.Sprintf("SET @slave_uuid = '%s', @replica_uuid = '%s'", id, id)) {
		if _, err := d.execute(set); err != nil {
			return err
		}
	}
	if cfg.toEnd {
		return nil // no replica
	}
	if err := d.command(mysql.COM_REGISTER_SLAVE, registration(cfg)); err != nil {
		return err
	}
	_, err = d.conn.ReadOKPacket()
	return err
}

// registration is what SHOW REPLICAS shows of us.
func registration(cfg Config) []byte {
	host, _ := os.Hostname() // for people; empty does as well
	b := binary.LittleEndian.AppendUint32(nil, cfg.ServerID)
	for _, text := range []string{host, cfg.User, ""} { // no password
		text = text[:min(len(text), 255)]
		b = append(append(b, byte(len(text))), text...)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(cfg.Port))
	return append(b, make([]byte, 8)...) // rank and source id, which servers ignore
}

func (d *dump) askFile(cfg Config, from position.Position) error {
	pos := uint32(from.Pos)
	if needsSkip(from) {
		pos = 0
	}
	return d.command(mysql.COM_BINLOG_DUMP, dumpFile(max(pos, 4), cfg.dumpFlags(), cfg.ServerID, from.File))
}

// annotations is the flag of MariaDB's dump command that asks for annotate events, or 0.
func (c Config) annotations() uint16 {
	const sendAnnotateRows = 2
	if c.tally != nil && c.tally.place.Annotations {
		return sendAnnotateRows
	}
	return 0
}

// dumpFile is the body of COM_BINLOG_DUMP.
func dumpFile(pos uint32, flags uint16, serverID uint32, file string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, pos)
	b = binary.LittleEndian.AppendUint16(b, flags)
	b = binary.LittleEndian.AppendUint32(b, serverID)
	return append(b, file...)
}

// askSet is COM_BINLOG_DUMP_GTID: the server finds the place, and the set says what
// is not to be sent.
func (d *dump) askSet(cfg Config, flavor position.Flavor, from position.Position) error {
	set, err := mysql.ParseGTIDSet(string(flavor), from.Set.String())
	if err != nil {
		return newError(BadConfig, err, "handing on the position")
	}
	wire := set.Encode()
	b := binary.LittleEndian.AppendUint16(make([]byte, 0, 34+len(wire)), cfg.dumpFlags())
	b = binary.LittleEndian.AppendUint32(b, cfg.ServerID)
	b = binary.LittleEndian.AppendUint32(b, 0) // no file name
	b = binary.LittleEndian.AppendUint64(b, 4)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(wire)))
	return d.command(mysql.COM_BINLOG_DUMP_GTID, append(b, wire...))
}

// command sends a command with its body.
func (d *dump) command(code byte, body []byte) error {
	d.conn.ResetSequence()
	return d.conn.WritePacket(append(append(make([]byte, 4, 5+len(body)), code), body...))
}

// run reads until the connection or handle fails, and notes why. handle may keep the
// event only when it is told that it owns it.
func (d *dump) run(handle func(raw []byte, owned bool) error) {
	defer close(d.done)
	p := newPackets(d.answers.Conn, d.conn.Sequence)
	for d.err == nil {
		d.err = d.step(p, handle)
	}
}

func (d *dump) step(p *packets, handle func(raw []byte, owned bool) error) error {
	data, owned, err := p.next()
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return newError(ServerFailed, nil, "the server sent an empty packet in place of an event")
	}
	switch data[0] {
	case mysql.OK_HEADER:
		event := data[1:]
		if h, err := parseHeader(event); err != nil || int64(h.size) != int64(len(event)) {
			// The connection brings nonsense. The binlog may be in order.
			return fmt.Errorf("a packet of %d bytes is no event", len(data))
		}
		return handle(event, owned)
	case mysql.ERR_HEADER:
		_, err := guarded(func() (struct{}, error) { return struct{}{}, d.conn.HandleErrorPacket(data) })
		return err
	case mysql.EOF_HEADER:
		return d.endOfDump()
	}
	return newError(ServerFailed, nil, "the server sent a packet of kind %d in place of an event", data[0])
}

// close closes the connection and waits for run, if that was called. The dialer's
// connections must be closed when handle may block.
func (d *dump) close() {
	_ = d.conn.Close() // it has nothing more to say
	<-d.done
}
