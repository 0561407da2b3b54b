// gVisor's netstack does a case: bench CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB, as src/case.rs has
// it. The steps are those of src/peers/host.rs.
//
// Its protocol runs in goroutines of its own; one processor is theirs and ours. Time is real, so that
// TIME-WAIT does not expire while it is measured. The server's addresses take turns, as an endpoint
// that is bound to one of the client's would reserve its port towards all servers.
package main

import (
	"bytes"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	atATime      = 64
	warmUp       = 1_000
	mostMeasured = 200_000
	staged       = 256
	portsOfOne   = 2_000 // One that is chosen at random is then rarely in TIME-WAIT.
	nic          = 1
)

var (
	request  = bytes.Repeat([]byte{'q'}, 64)
	response = bytes.Repeat([]byte{'r'}, 256)
)

type host struct {
	*stack.Stack
	link *channel.Endpoint
}

// A connection's end and how much it read.
type end struct {
	tcpip.Endpoint
	server, asked bool
	read          int
}

type bench struct {
	client, server              host
	listener                    tcpip.Endpoint
	events                      chan *end
	addresses                   int
	idle, keeping               bool
	opened, connected, accepted int
	done, up, down              int
	kept                        [][]byte
	fillTime, measureTime       time.Duration
	memory                      float64
}

func check(err tcpip.Error) {
	if err != nil {
		log.Fatalf("gvisor: %s", err)
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Bytes of memory that this process holds.
func resident() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		log.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		log.Fatal(err)
	}
	return float64(pages * os.Getpagesize())
}

func collected() float64 {
	debug.FreeOSMemory()
	return resident()
}

// The host with this number, in 10.0.0.0/8.
func address(number int) tcpip.Address {
	return tcpip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)})
}

func newHost(first, addresses int) host {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	link := channel.New(1<<16, 1500, "")
	check(s.CreateNIC(nic, link))
	for number := first; number < first+addresses; number++ {
		own := tcpip.AddressWithPrefix{Address: address(number), PrefixLen: 8}
		check(s.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own}, stack.AddressProperties{}))
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host{s, link}
}

func (h host) receive(packet []byte) {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	h.link.InjectInbound(ipv4.ProtocolNumber, pkt)
	pkt.DecRef()
}

// What one host has to send is copied and arrives at the other.
func (b *bench) carry(from, to host) (count int) {
	for pkt := from.link.Read(); pkt != nil; pkt = from.link.Read() {
		packet := pkt.ToBuffer()
		data := packet.Flatten()
		packet.Release()
		pkt.DecRef()
		if b.keeping && to == b.server && data[20+13] == byte(header.TCPFlagAck) {
			b.kept = append(b.kept, data)
		}
		to.receive(data)
		count++
	}
	return count
}

// step does what is to be done, and lets the stacks do theirs.
func (b *bench) step() {
	b.carry(b.client, b.server)
	b.carry(b.server, b.client)
	runtime.Gosched()
	for {
		select {
		case e := <-b.events:
			b.serve(e)
		default:
			return
		}
	}
}

func (b *bench) watch(e *end, queue *waiter.Queue) {
	entry := waiter.NewFunctionEntry(waiter.EventIn|waiter.EventOut|waiter.EventHUp|waiter.EventErr, func(waiter.EventMask) { b.events <- e })
	queue.EventRegister(&entry)
}

func (b *bench) serve(e *end) {
	switch {
	case e.Endpoint == b.listener:
		for {
			ep, queue, err := b.listener.Accept(nil)
			if err != nil {
				return
			}
			b.accepted++
			accepted := &end{Endpoint: ep, server: true}
			b.watch(accepted, queue)
			b.readAll(accepted, request)
		}
	case e.server:
		b.readAll(e, request)
	case !e.asked && tcp.EndpointState(e.State()) == tcp.StateEstablished:
		e.asked = true
		b.connected++
		if !b.idle {
			e.writeAll(request)
		}
	case e.asked:
		b.readAll(e, response)
	}
}

func (e *end) writeAll(data []byte) {
	count, err := e.Write(bytes.NewReader(data), tcpip.WriteOptions{})
	check(err)
	if count != int64(len(data)) {
		log.Fatalf("gvisor: %d of %d bytes were taken", count, len(data))
	}
}

// readAll compares what arrives with what is to come, answers and closes.
func (b *bench) readAll(e *end, wanted []byte) {
	for e.read <= len(wanted) {
		var got bytes.Buffer
		result, err := e.Read(&got, tcpip.ReadOptions{})
		switch err.(type) {
		case nil:
		case *tcpip.ErrWouldBlock:
			return
		case *tcpip.ErrClosedForReceive:
			if !e.server && e.read == len(wanted) {
				e.read++ // Nothing is read after the end.
				e.Close()
				b.done++
			}
			return
		default:
			log.Fatalf("gvisor: reading: %s", err)
		}
		if e.read+result.Count > len(wanted) || !bytes.Equal(got.Bytes(), wanted[e.read:e.read+result.Count]) {
			log.Fatal("gvisor: bytes that were not sent")
		}
		e.read += result.Count
		if !e.server {
			b.down += result.Count
			continue
		}
		b.up += result.Count
		if e.read == len(wanted) {
			e.writeAll(response)
			e.Close()
			return
		}
	}
}

func (b *bench) connect(to tcpip.FullAddress) (*end, tcpip.Error) {
	queue := new(waiter.Queue)
	ep, err := b.client.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, queue)
	check(err)
	e := &end{Endpoint: ep}
	b.watch(e, queue)
	err = ep.Connect(to)
	if _, started := err.(*tcpip.ErrConnectStarted); started {
		return e, nil
	}
	ep.Close()
	return nil, err
}

func (b *bench) open() {
	server := address(1 + b.opened%b.addresses)
	_, err := b.connect(tcpip.FullAddress{NIC: nic, Addr: server, Port: 80})
	check(err)
	b.opened++
}

func (b *bench) churn(count int) {
	for goal := b.done + count; b.done < goal; b.step() {
		for b.opened-b.done < atATime && b.opened < goal {
			b.open()
		}
	}
}

func (b *bench) openIdle(count int) {
	for range count {
		b.open()
	}
	for b.connected < b.opened || b.accepted < b.opened {
		b.step()
	}
}

func (b *bench) discard() (count int) {
	for range 3 {
		runtime.Gosched()
		count += b.client.link.Drain() + b.server.link.Drain()
	}
	return count
}

// The SYN with this number, from a host and port of its own.
func syn(number int) []byte {
	const length = header.IPv4MinimumSize + header.TCPMinimumSize + header.TCPOptionMSSLength
	packet := make([]byte, length)
	from, to := address(0x800000+number/60_000), address(1)
	ip := header.IPv4(packet)
	ip.Encode(&header.IPv4Fields{TotalLength: length, TTL: 64, Protocol: uint8(tcp.ProtocolNumber), SrcAddr: from, DstAddr: to})
	ip.SetChecksum(^ip.CalculateChecksum())
	segment := header.TCP(ip.Payload())
	segment.Encode(&header.TCPFields{
		SrcPort: uint16(1_024 + number%60_000), DstPort: 80, SeqNum: uint32(number),
		DataOffset: header.TCPMinimumSize + header.TCPOptionMSSLength, Flags: header.TCPFlagSyn, WindowSize: 65_535,
	})
	header.EncodeMSSOption(1_460, segment[header.TCPMinimumSize:])
	sum := header.PseudoHeaderChecksum(tcp.ProtocolNumber, from, to, uint16(len(segment)))
	segment.SetChecksum(^segment.CalculateChecksum(sum))
	return packet
}

func (b *bench) receiveSyns(count int) {
	for range count {
		b.server.receive(syn(b.opened))
		b.opened++
	}
	// Its goroutines may be kept from the processor while garbage is collected: their answers come later.
	answered := b.discard()
	for until := time.Now().Add(time.Second); answered < count && time.Now().Before(until); {
		answered += b.discard()
	}
	if answered < count {
		log.Fatalf("gvisor: %d answers to %d SYNs", answered, count)
	}
}

func (b *bench) fill(count int, more func(int)) (filled int) {
	until := cpuTime() + b.fillTime
	for filled < count && cpuTime() < until && resident() < b.memory {
		next := min(count-filled, 4*atATime)
		more(next)
		filled += next
	}
	return filled
}

func (b *bench) waiting() (count int) {
	for _, ep := range b.server.RegisteredEndpoints() {
		if e, ok := ep.(tcpip.Endpoint); ok && tcp.EndpointState(e.State()) == tcp.StateTimeWait {
			count++
		}
	}
	return count
}

func (b *bench) answer(scale int, value float64, connections int) {
	fmt.Printf("scale %d\nvalue %g\nconnections %d\nup %d\ndown %d\n", scale, value, connections, b.up, b.down)
}

func (b *bench) measureChurn(scale int) {
	wait := tcpip.TCPTimeWaitTimeoutOption(time.Hour)
	if scale == 0 {
		wait = tcpip.TCPTimeWaitTimeoutOption(time.Millisecond)
	}
	check(b.server.SetTransportProtocolOption(tcp.ProtocolNumber, &wait))
	b.churn(warmUp)
	b.fill(max(scale-warmUp, 0), b.churn)
	reached, before, begun := b.waiting(), b.done, cpuTime()
	b.up, b.down = 0, 0
	var spent time.Duration
	// More would make many of few.
	most := min(mostMeasured, max(scale, warmUp))
	if scale == 0 {
		most = mostMeasured
	}
	for spent < b.measureTime && b.done-before < most {
		b.churn(4 * atATime)
		spent = cpuTime() - begun
	}
	b.answer(reached, micros(spent, b.done-before), b.done-before)
}

func (b *bench) measurePorts(percent int) {
	silent := tcpip.FullAddress{NIC: nic, Addr: address(0xffff01), Port: 80}
	check(b.client.SetPortRange(32_768, 60_999))
	connect := func() *end {
		e, err := b.connect(silent)
		if _, none := err.(*tcpip.ErrNoPortAvailable); !none {
			check(err)
		}
		return e
	}
	abort := func(e *end) {
		e.Abort()
		b.discard()
	}
	var held []*end
	until := cpuTime() + 4*b.fillTime
	for percent > 0 {
		e := connect()
		if e == nil {
			break
		}
		held = append(held, e)
		b.client.link.Drain()
		if cpuTime() > until {
			fmt.Printf("skip %d were taken in %g s of CPU time, and not all\n", len(held), 4*b.fillTime.Seconds())
			return
		}
	}
	all := len(held)
	for len(held)*100 > all*percent {
		picked, last := rand.IntN(len(held)), len(held)-1
		abort(held[picked])
		held[picked], held = held[last], held[:last]
	}
	batch := atATime
	if percent > 0 {
		batch = min(max((all-len(held))/4, 1), atATime)
	}
	var spent time.Duration
	calls := 0
	for ; spent < b.measureTime && calls < mostMeasured; calls += batch {
		got := make([]*end, batch)
		begun := cpuTime()
		for i := range got {
			got[i] = connect()
		}
		spent += cpuTime() - begun
		for _, e := range got {
			if (e != nil) != (percent < 100) {
				log.Fatal("gvisor: a port where none was left, or none where some were")
			}
			if e != nil {
				abort(e)
			}
		}
	}
	b.answer(percent, micros(spent, calls), 0)
}

func (b *bench) measureMemory(scale int, kind string) {
	more, ends := b.churn, 1
	switch kind {
	case "syn":
		more = b.receiveSyns
	case "idle":
		b.idle, more, ends = true, b.openIdle, 2
	default:
		wait := tcpip.TCPTimeWaitTimeoutOption(time.Hour)
		check(b.server.SetTransportProtocolOption(tcp.ProtocolNumber, &wait))
	}
	more(warmUp)
	first := warmUp
	if kind == "time-wait" {
		first = b.waiting()
	}
	before := collected()
	reached := first + b.fill(max(scale-warmUp, 0), more)
	grown := collected() - before
	if kind == "time-wait" {
		reached = b.waiting()
	}
	b.up, b.down = 0, 0
	b.answer(reached, grown/float64(ends*(reached-first)), 0)
}

func (b *bench) measurePackets(scale, atATime int) {
	b.idle, b.keeping = true, true
	reached := b.fill(scale, b.openIdle)
	b.keeping = false
	if len(b.kept) != reached {
		log.Fatalf("gvisor: %d last packets of %d handshakes", len(b.kept), reached)
	}
	received := b.server.Stats().TCP.ValidSegmentsReceived
	before := received.Value()
	var spent time.Duration
	packets := 0
	for ; spent < b.measureTime && packets < mostMeasured; packets += staged {
		var picked [staged][]byte
		for i := range picked {
			picked[i] = bytes.Clone(b.kept[rand.IntN(reached)])
		}
		begun := cpuTime()
		for i, packet := range picked {
			b.server.receive(packet)
			if (i+1)%atATime == 0 && b.discard() > 0 {
				log.Fatal("gvisor: acknowledgments were answered")
			}
		}
		spent += cpuTime() - begun
	}
	if received.Value()-before != uint64(packets) {
		log.Fatal("gvisor: packets were not accepted")
	}
	b.answer(reached, micros(spent, packets), 0)
}

func micros(spent time.Duration, count int) float64 {
	return float64(spent.Nanoseconds()) / 1e3 / float64(count)
}

func main() {
	log.SetFlags(0)
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 6 {
		log.Fatal("usage: bench CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB")
	}
	var numbers [4]int
	for i := range numbers {
		number, err := strconv.Atoi(os.Args[i+2])
		if err != nil {
			log.Fatal(err)
		}
		numbers[i] = number
	}
	kind, scale := os.Args[1], numbers[0]
	b := &bench{addresses: 1 + scale/portsOfOne, events: make(chan *end, 1<<20)}
	b.fillTime = time.Duration(numbers[1]) * time.Millisecond
	b.measureTime = time.Duration(numbers[2]) * time.Millisecond
	b.memory = float64(numbers[3]) * (1 << 20)
	b.client, b.server = newHost(0x700000, 1), newHost(1, b.addresses)
	check(b.client.SetPortRange(1_024, 65_535))
	queue := new(waiter.Queue)
	listener, err := b.server.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, queue)
	check(err)
	b.listener = listener
	b.watch(&end{Endpoint: listener}, queue)
	check(listener.Bind(tcpip.FullAddress{Port: 80}))
	check(listener.Listen(1 << 24))
	switch kind {
	case "churn":
		b.measureChurn(scale)
	case "datagrams":
		b.measureDatagrams(scale)
	case "ports":
		b.measurePorts(scale)
	case "packet":
		b.measurePackets(scale, 1)
	case "burst":
		b.measurePackets(scale, staged)
	default:
		b.measureMemory(scale, kind)
	}
}
