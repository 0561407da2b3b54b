// gVisor's netstack carries text in bulk: bulk FLOWS LINK BUFFER MILLISECONDS, where LINK is an MTU or "super", and
// BUFFER bytes or "auto". What is measured is what src/bulk.rs measures of the others, and it answers in the same
// words.
//
// What is written it copies into buffers of its own, whatever the application does; what is read is looked at where
// it lies. Time is real. Every byte of the first 4 MiB is compared with what was sent.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// As in src/bulk/text.rs and link.rs.
	piece       = 64 << 10
	period      = 262_139
	burstFrames = 64
	checked     = 4 << 20
	warmUp      = 16 << 20
	atOnce      = 4 << 20
	nic         = 1
	service     = 10_000
)

var source [period]byte

type host struct {
	*stack.Stack
	link *channel.Endpoint
}

// A connection, and how far its stream is at either end.
type flow struct {
	client, server tcpip.Endpoint
	sent, read     int
}

type bench struct {
	client, server  host
	flows           []*flow
	carried, frames int
	checking        bool
}

func check(err tcpip.Error) {
	if err != nil {
		log.Fatalf("gvisor: %s", err)
	}
}

func usage() (time.Duration, int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), usage.Minflt
}

func address(number byte) tcpip.Address {
	return tcpip.AddrFrom4([4]byte{10, 0, 0, number})
}

func newHost(number byte, link, size string) host {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	mtu := 1500
	if link != "super" {
		mtu = number32(link)
	}
	endpoint := channel.New(1<<14, uint32(mtu), "")
	if link == "super" {
		endpoint.SupportedGSOKind = stack.HostGSOSupported
		endpoint.LinkEPCapabilities |= stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
	}
	if size != "auto" {
		size := number32(size)
		send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: size, Max: size}
		receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: size, Max: size}
		moderate := tcpip.TCPModerateReceiveBufferOption(false)
		check(s.SetTransportProtocolOption(tcp.ProtocolNumber, &send))
		check(s.SetTransportProtocolOption(tcp.ProtocolNumber, &receive))
		check(s.SetTransportProtocolOption(tcp.ProtocolNumber, &moderate))
	}
	check(s.CreateNIC(nic, endpoint))
	own := tcpip.AddressWithPrefix{Address: address(number), PrefixLen: 8}
	check(s.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: own}, stack.AddressProperties{}))
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host{s, endpoint}
}

func number32(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return number
}

// A burst of what one host has to send is copied and arrives at the other.
func (b *bench) carry(from, to host) (count int) {
	for ; count < burstFrames; count++ {
		pkt := from.link.Read()
		if pkt == nil {
			break
		}
		packet := pkt.ToBuffer()
		data := packet.Flatten()
		packet.Release()
		pkt.DecRef()
		if len(data) > 100 {
			b.frames++
		}
		arrived := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(data)})
		to.link.InjectInbound(ipv4.ProtocolNumber, arrived)
		arrived.DecRef()
	}
	return count
}

// What is read is compared, where it lies.
type reader struct {
	*bench
	*flow
}

func (r reader) Write(text []byte) (int, error) {
	for at := 0; r.checking && at < len(text); {
		from := (r.read + at) % period
		wanted := source[from:min(period, from+len(text)-at)]
		if !bytes.Equal(text[at:at+len(wanted)], wanted) {
			log.Fatal("gvisor: other bytes than were sent")
		}
		at += len(wanted)
	}
	r.flow.read += len(text)
	r.carried += len(text)
	return len(text), nil
}

func (b *bench) readAll(f *flow) {
	for {
		_, err := f.server.Read(reader{b, f}, tcpip.ReadOptions{})
		if _, empty := err.(*tcpip.ErrWouldBlock); empty {
			return
		}
		check(err)
	}
}

func (f *flow) writeAll() {
	for {
		from := f.sent % period
		count, err := f.client.Write(bytes.NewReader(source[from:min(period, from+piece)]), tcpip.WriteOptions{})
		f.sent += int(count)
		if _, full := err.(*tcpip.ErrWouldBlock); full {
			return
		}
		check(err)
	}
}

func (b *bench) step() {
	b.carry(b.client, b.server)
	runtime.Gosched()
	for _, f := range b.flows {
		b.readAll(f)
	}
	b.carry(b.server, b.client)
	runtime.Gosched()
}

func (b *bench) carryText(count int) {
	for goal := b.carried + count; b.carried < goal; b.step() {
		for _, f := range b.flows {
			f.writeAll()
		}
	}
}

func (b *bench) open(port uint16) {
	queue := new(waiter.Queue)
	listener, err := b.server.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, queue)
	check(err)
	check(listener.Bind(tcpip.FullAddress{Port: port}))
	check(listener.Listen(1))
	client, err := b.client.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, new(waiter.Queue))
	check(err)
	err = client.Connect(tcpip.FullAddress{NIC: nic, Addr: address(1), Port: port})
	if _, started := err.(*tcpip.ErrConnectStarted); !started {
		check(err)
	}
	for {
		b.step()
		server, _, err := listener.Accept(nil)
		if err == nil {
			b.flows = append(b.flows, &flow{client: client, server: server})
			return
		}
		if _, none := err.(*tcpip.ErrWouldBlock); !none {
			check(err)
		}
	}
}

func main() {
	log.SetFlags(0)
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 5 {
		log.Fatal("usage: bulk FLOWS LINK BUFFER MILLISECONDS")
	}
	state := uint32(1)
	for at := range source {
		state = state*1_664_525 + 1_013_904_223
		source[at] = byte(state >> 24)
	}
	link, size := os.Args[2], os.Args[3]
	b := &bench{client: newHost(2, link, size), server: newHost(1, link, size)}
	for number := range number32(os.Args[1]) {
		b.open(uint16(service + number))
	}
	b.checking = true
	b.carryText(checked)
	b.checking = false
	b.carryText(warmUp)
	carried, frames := b.carried, b.frames
	begun, faults := usage()
	lasts := time.Duration(number32(os.Args[4])) * time.Millisecond
	for {
		b.carryText(atOnce)
		now, since := usage()
		if spent := now - begun; spent >= lasts {
			rate := float64(b.carried-carried) * 8 / spent.Seconds() / 1e9
			fmt.Println(rate, float64(since-faults)/float64(b.frames-frames))
			return
		}
	}
}
