import Glibc
import NetOptCore
@testable import NetOptEngine
import NetOptTestSupport
import TestTools
import Testing

/// Tests ICMP echo requests (ping): to this machine, and in a network namespace of the test.
@Suite struct EchoTests {
  /// The IPv6 loopback address, ::1.
  private static let loopback6 = IPAddress(v6: [UInt8](repeating: 0, count: 15) + [1])

  /// Whether this process may open an ICMP socket.
  private static var isAllowed: Bool {
    guard let socket = try? EchoSocket(to: .loopback) else { return false }
    socket.close()
    return true
  }

  @Test(
    "20 concurrent echo requests to this machine get replies and leave no descriptor open",
    .enabled("this process may not send ICMP: run as root, or see net.ipv4.ping_group_range") { isAllowed },
    arguments: [IPAddress.loopback, loopback6])
  func loopbackReplies(address: IPAddress) async throws {
    let loop = try EventLoop()
    defer { loop.stop() }
    let before = ProcessFootprint.now.descriptors
    await withTaskGroup(of: Echo.Outcome.self) { group in
      for _ in 0..<20 {
        group.addTask { await Echo.roundTrip(to: address, within: .seconds(5), on: loop) }
      }
      for await outcome in group {
        #expect((try? outcome.get()).map { $0 > .zero } == true, "\(outcome)")
      }
    }
    #expect(ProcessFootprint.now.descriptors <= before)
  }

  /// Tests IPv4 and IPv6 in a network namespace whose `ping_group_range` permits datagram sockets.
  @Test(
    "an echo request uses a datagram socket where ping_group_range permits it",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func prefersDatagramSocket() async throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    try namespace.run {
      // The setting belongs to the network namespace of the thread that writes it.
      let file = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC)
      let text = Array("0 2147483647".utf8)
      guard file >= 0, write(file, text, text.count) == text.count else {
        throw TestSupportError("ping_group_range cannot be set")
      }
      close(file)
      for address in [IPAddress.loopback, Self.loopback6] {
        let socket = try EchoSocket(to: address)
        // Only a datagram socket has an identifier from the kernel.
        #expect(socket.identifier != nil)
        socket.close()
      }
    }
    let loop = try namespace.run { try EventLoop() }
    for address in [IPAddress.loopback, Self.loopback6] {
      let outcome = await Echo.roundTrip(to: address, within: .seconds(5), on: loop)
      #expect((try? outcome.get()).map { $0 > .zero } == true, "\(outcome)")
    }
    loop.stop()
  }

  @Test(
    "a missing route, a silent host and a cancelled task have different errors",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func distinguishesErrors() async throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    let loop = try namespace.run { try EventLoop() }
    // There is no route to the address.
    guard
      case .failure(let nowhere) = await Echo.roundTrip(
        to: IPAddress(v4: 0xc000_0201), within: .seconds(5), on: loop)
    else {
      Issue.record("an address without a route answered")
      return
    }
    #expect(nowhere.failure.kind == .unreachable)
    #expect(nowhere.failure.message.contains("192.0.2.1"))
    // Now there is a route to the address, but no host at the address. The neighbour entry has a link-layer
    // address, so the kernel sends the packet and reports no error.
    try namespace.addLink("hole")
    try namespace.ip("addr add 192.0.2.2/24 dev hole")
    try namespace.ip("neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev hole")
    guard
      case .failure(let silent) = await Echo.roundTrip(
        to: IPAddress(v4: 0xc000_0201), within: .milliseconds(30), on: loop)
    else {
      Issue.record("an address without a machine answered")
      return
    }
    #expect(silent.failure.kind == .connectTimeout)
    #expect(!silent.isInconclusive)
    // Cancelling the task ends the request at once.
    let task = Task { await Echo.roundTrip(to: IPAddress(v4: 0xc000_0201), within: .seconds(60), on: loop) }
    task.cancel()
    guard case .failure(let cancelled) = await task.value else {
      Issue.record("it answered")
      return
    }
    #expect(cancelled.isInconclusive)
    loop.stop()
  }

  /// A raw socket receives every ICMP error about an ICMP packet to the socket's address, whichever program
  /// sent the packet.
  @Test(
    "a raw socket skips ICMP errors about packets of other programs",
    .enabled("\(NetworkNamespace.missing)") { NetworkNamespace.isAvailable })
  func skipsForeignErrors() throws {
    let namespace = try NetworkNamespace()
    defer { namespace.end() }
    try namespace.addLink("hole")
    try namespace.ip("addr add 192.0.2.2/24 dev hole")
    try namespace.ip("neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev hole")
    try namespace.run {
      let here = IPAddress(v4: 0xc000_0202)
      let there = IPAddress(v4: 0xc000_0201)
      var random = SplitMix64(seed: 7)
      let mine = EchoMessage(identifier: 0x1234, sequence: 1, using: &random)
      let socket = try EchoSocket(to: there)
      defer { socket.close() }
      try #require(socket.identifier == nil, "a raw socket")
      // This error arrives before the first request. A pending error makes send(2) fail, so `send` must skip
      // it.
      try Self.deliverError(
        to: socket, at: here, about: EchoMessage(identifier: 9, sequence: 1, using: &random), to: there)
      try socket.send(mine)
      #expect(try socket.receive(for: mine) == nil)
      // Three requests of other programs. The last one has the identifier and the sequence number of `mine`,
      // and differs from `mine` only in the random payload.
      let others = [
        EchoMessage(identifier: 0x4321, sequence: 1, using: &random),
        EchoMessage(identifier: 0x1234, sequence: 2, using: &random),
        EchoMessage(identifier: 0x1234, sequence: 1, using: &random),
      ]
      for other in others {
        try Self.deliverError(to: socket, at: here, about: other, to: there)
        #expect(try socket.receive(for: mine) == nil)
      }
      // The error about `mine` comes after an error about a packet of another program.
      try Self.deliverError(to: socket, at: here, about: others[0], to: there)
      try Self.deliverError(to: socket, at: here, about: mine, to: there)
      let error = #expect(throws: LegError.self) { try socket.receive(for: mine) }
      #expect(error?.failure.kind == .unreachable)
      #expect(error?.failure.message.contains("No route to host") == true)
      #expect(try socket.receive(for: mine) == nil)
    }
  }

  /// Sends this machine the ICMP error "host unreachable" about a request, as a router would (RFC 792). Waits
  /// until the socket has the error.
  ///
  /// - Parameters:
  ///   - source: the address of this machine, from which the quoted request was sent. The error goes there.
  ///   - message: the request that the error quotes.
  ///   - destination: the address to which the quoted request was sent.
  private static func deliverError(
    to socket: EchoSocket, at source: IPAddress, about message: EchoMessage, to destination: IPAddress
  ) throws {
    let request = message.request(.v4)
    // The IPv4 packet that the error quotes. Its header has no checksum, because no code checks it.
    var packet: [UInt8] = [0x45, 0, 0, UInt8(20 + request.count), 0, 0, 0, 0, 64, 1, 0, 0]
    packet += source.bytes + destination.bytes + request
    var error: [UInt8] = [3, 1, 0, 0, 0, 0, 0, 0] + packet
    let sum = EchoMessage.checksum(error[...])
    error[2] = UInt8(sum >> 8)
    error[3] = UInt8(sum & 0xff)
    let router = try EchoSocket(to: source)
    defer { router.close() }
    let count = error.withUnsafeBytes { Glibc.send(router.descriptor, $0.baseAddress, $0.count, 0) }
    guard count == error.count else { throw TestSupportError("no message of ICMP could be sent") }
    var descriptors = [pollfd(fd: socket.descriptor, events: 0, revents: 0)]
    guard poll(&descriptors, 1, 10_000) == 1 else { throw TestSupportError("the error did not arrive") }
  }
}
