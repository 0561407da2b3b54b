// Datagrams there and back; see src/datagrams.rs.
package main

import (
	"bytes"
	"encoding/binary"
	"log"
	"runtime"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	datagram = 64
	echoPort = 7
)

// A socket, and what it sent last.
type socket struct {
	tcpip.Endpoint
	sent     uint64
	returns  bool
	received bytes.Buffer
}

type echoes struct {
	*bench
	readable []*socket
	next     uint64
}

func content(number uint64) (data [datagram]byte) {
	for word := range uint64(datagram / 8) {
		binary.BigEndian.PutUint64(data[word*8:], number+word)
	}
	return data
}

func numberOf(data []byte) uint64 {
	if len(data) != datagram {
		log.Fatalf("gvisor: a datagram of %d bytes", len(data))
	}
	number := binary.BigEndian.Uint64(data)
	if wanted := content(number); !bytes.Equal(data, wanted[:]) {
		log.Fatal("gvisor: bytes that were not sent")
	}
	return number
}

func (e *echoes) bind(h host, at tcpip.FullAddress) *socket {
	queue := new(waiter.Queue)
	ep, err := h.NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, queue)
	check(err)
	check(ep.Bind(at))
	s := &socket{Endpoint: ep}
	entry := waiter.NewFunctionEntry(waiter.EventIn, func(waiter.EventMask) { e.readable = append(e.readable, s) })
	queue.EventRegister(&entry)
	return s
}

func (s *socket) send(data []byte, to *tcpip.FullAddress) {
	count, err := s.Write(bytes.NewReader(data), tcpip.WriteOptions{To: to})
	check(err)
	if count != datagram {
		log.Fatalf("gvisor: %d bytes were taken", count)
	}
}

func (e *echoes) ask(s *socket) {
	s.sent = e.next
	e.next++
	data := content(s.sent)
	s.send(data[:], nil)
}

func (e *echoes) look() {
	for len(e.readable) > 0 {
		ready := e.readable
		e.readable = nil
		for _, s := range ready {
			e.readAll(s)
		}
	}
}

func (e *echoes) readAll(s *socket) {
	for {
		s.received.Reset()
		result, err := s.Read(&s.received, tcpip.ReadOptions{NeedRemoteAddr: true})
		if _, none := err.(*tcpip.ErrWouldBlock); none {
			return
		}
		check(err)
		number := numberOf(s.received.Bytes())
		if s.returns {
			e.up += result.Count
			s.send(s.received.Bytes(), &result.RemoteAddr)
			continue
		}
		if number != s.sent {
			log.Fatal("gvisor: a datagram that another socket sent")
		}
		e.down += result.Count
		e.done++
		e.ask(s)
	}
}

func (e *echoes) roundTrips(count int) {
	for goal := e.done + count; e.done < goal; {
		before := e.done
		e.carry(e.client, e.server)
		e.look()
		e.carry(e.server, e.client)
		e.look()
		if e.done == before {
			runtime.Gosched()
		}
	}
}

func (b *bench) measureDatagrams(atATime int) {
	e := &echoes{bench: b}
	server := tcpip.FullAddress{NIC: nic, Addr: address(1), Port: echoPort}
	e.bind(b.server, server).returns = true
	for range atATime {
		s := e.bind(b.client, tcpip.FullAddress{NIC: nic, Addr: address(0x700000)})
		check(s.Connect(server))
		e.ask(s)
	}
	e.roundTrips(10 * warmUp)
	before, begun := e.done, cpuTime()
	b.up, b.down = 0, 0
	var spent time.Duration
	for spent < b.measureTime {
		e.roundTrips(100 * 64)
		spent = cpuTime() - begun
	}
	b.answer(atATime, micros(spent, e.done-before), e.done-before)
}
