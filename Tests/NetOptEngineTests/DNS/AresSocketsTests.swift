import Glibc
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptEngine

/// The socket functions that netopt gives to c-ares. The tests call these functions as c-ares would, on pairs
/// of connected sockets.
@Suite(.timeLimit(.minutes(1))) struct AresSocketsTests {
  // MARK: Datagrams

  @Test("c-ares reads at most 64 datagrams in a turn, and the rest in the next turns")
  func readsSomeDatagramsInATurn() throws {
    let pair = try AresSocketPair(SOCK_DGRAM)
    for number in 0..<150 { pair.write(message(id: UInt16(number))) }
    var next = 0
    for expected in [64, 64, 22, 0] {
      pair.sockets.beginReading()
      var count = 0
      while case .octets(let octets) = pair.read(4_097) {
        #expect(octets == message(id: UInt16(next)))
        next += 1
        count += 1
      }
      #expect(count == expected)
      #expect(pair.read(4_097) == .failed(EAGAIN))
    }
  }

  @Test("a refused datagram is dropped, and counts towards the 64 datagrams of a turn")
  func dropsDatagrams() throws {
    let pair = try AresSocketPair(SOCK_DGRAM)
    pair.write(hostile)
    pair.write([])
    pair.write(message(id: 1))
    for _ in 0..<64 { pair.write(hostile) }
    pair.write(message(id: 2))
    pair.sockets.beginReading()
    #expect(pair.read(4_097) == .octets(message(id: 1)))
    #expect(pair.read(4_097) == .failed(EAGAIN))
    pair.sockets.beginReading()
    #expect(pair.read(4_097) == .octets(message(id: 2)))
  }

  // MARK: TCP connections

  @Test("messages over TCP stay unchanged, whatever portions arrive and whatever portions c-ares reads")
  func givesMessagesInPortions() throws {
    var random = SplitMix64(seed: 1)
    for _ in 0..<10 {
      let pair = try AresSocketPair(SOCK_STREAM)
      let octets = (0..<12).flatMap { number in
        framed(message(id: number, length: random.below(4) == 0 ? 65_535 : Int(random.below(700))))
      }
      var (sent, read): (Int, [UInt8]) = (0, [])
      while read.count < octets.count {
        let end = min(octets.count, sent + Int(random.below(random.below(2) == 0 ? 4 : 30_000)))
        pair.write(octets[sent..<end])
        sent = end
        pair.sockets.beginReading()
        while case .octets(let more) = pair.read(1 + Int(random.below(random.below(2) == 0 ? 2 : 70_000))) {
          read += more
        }
        #expect(!pair.sockets.hasUnread(pair.ours))
        #expect(read.count <= sent)
      }
      #expect(read == octets)
    }
  }

  @Test("c-ares gets no octet of a TCP message before the message is complete")
  func waitsForWholeMessages() throws {
    let pair = try AresSocketPair(SOCK_STREAM)
    pair.sockets.beginReading()
    let octets = framed(message(id: 1, length: 300))
    for octet in octets.dropLast() {
      pair.write([octet])
      #expect(pair.read(2) == .failed(EAGAIN))
    }
    pair.write(octets.suffix(1))
    #expect(pair.read(2) == .octets([1, 44]))
    #expect(pair.sockets.hasUnread(pair.ours))
    #expect(pair.read(1_000) == .octets(message(id: 1, length: 300)))
    #expect(!pair.sockets.hasUnread(pair.ours))
    #expect(pair.sockets.taken == 302)
  }

  @Test("c-ares reads at most 64 messages from a TCP connection in a turn")
  func readsSomeMessagesInATurn() throws {
    let pair = try AresSocketPair(SOCK_STREAM)
    for number in 0..<65 { pair.write(framed(message(id: UInt16(number)))) }
    pair.sockets.beginReading()
    for _ in 0..<64 {
      #expect(pair.read(2) == .octets([0, 12]))
      guard case .octets = pair.read(12) else { return #expect(Bool(false), "the turn ended too early") }
    }
    #expect(pair.read(2) == .failed(EAGAIN))
    pair.sockets.beginReading()
    #expect(pair.read(2) == .octets([0, 12]))
  }

  @Test("a refused TCP message ends its connection, and a new connection with the same number works")
  func endsConnections() throws {
    for octets in [hostile, [], [0]] {
      let pair = try AresSocketPair(SOCK_STREAM)
      pair.sockets.beginReading()
      pair.write(framed(message(id: 1)) + framed(octets) + framed(message(id: 2)))
      #expect(pair.read(14) == .octets(framed(message(id: 1))))
      for _ in 0..<3 { #expect(pair.read(2) == .failed(ECONNRESET)) }
      #expect(!pair.sockets.hasUnread(pair.ours))
      // c-ares closes the socket, and may open another socket with the same number.
      try pair.reopen()
      pair.write(framed(message(id: 3)))
      #expect(pair.read(14) == .octets(framed(message(id: 3))))
    }
  }

  @Test("c-ares gets the end of a TCP connection, even in the middle of a message")
  func reportsEnd() throws {
    for octets in [[], [0], [0, 12, 1]] as [[UInt8]] {
      let pair = try AresSocketPair(SOCK_STREAM)
      pair.sockets.beginReading()
      pair.write(octets)
      #expect(pair.read(2) == .failed(EAGAIN))
      pair.closeTheirs()
      #expect(pair.read(2) == .octets([]))
    }
  }

  // MARK: Opening, sending, closing

  @Test(
    "sockets are non-blocking and close-on-exec, and TCP sockets have TCP_NODELAY",
    arguments: [SOCK_DGRAM, SOCK_STREAM])
  func opensSockets(type: __socket_type) throws {
    let sockets = AresSockets()
    let functions = sockets.functions.pointee
    let descriptor = try #require(functions.asocket?(AF_INET, Int32(type.rawValue), 0, sockets.argument))
    #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
    #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    if type == SOCK_STREAM {
      var (value, length): (Int32, socklen_t) = (0, 4)
      #expect(getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, &length) == 0)
      #expect(value == 1)
    }
    #expect(functions.aclose?(descriptor, sockets.argument) == 0)
    #expect(fcntl(descriptor, F_GETFD) == -1)
  }

  @Test("sent octets arrive, and sending to a closed peer fails without a signal")
  func sends() throws {
    let pair = try AresSocketPair(SOCK_STREAM)
    #expect(pair.send([1, 2, 3]) == 3)
    var bytes: [UInt8] = [0, 0, 0]
    #expect(recv(pair.theirs, &bytes, 3, 0) == 3)
    #expect(bytes == [1, 2, 3])
    pair.closeTheirs()
    #expect(pair.send([4]) == -1)
  }

  // MARK: Support

  /// Returns a DNS message that `AresSockets` accepts: a header of 12 octets, and a record of an unknown type
  /// that fills the message up to its length.
  ///
  /// - Parameter length: the length in octets. With a length below 23 there is no room for a record, and the
  ///   message is only the header.
  private func message(id: UInt16, length: Int = 12) -> [UInt8] {
    var writer = DNSMessageWriter(id: id)
    let data = length - 12 - 11
    if data >= 0 {
      writer.record(
        .answer, type: 65_280, owner: { $0.name([]) },
        data: { $0.raw((0..<data).map { UInt8(truncatingIfNeeded: $0 &* 7) }) })
    }
    return writer.bytes
  }

  /// A message that `AresSockets` refuses: the owner of its record is a pointer to itself.
  private var hostile: [UInt8] {
    var writer = DNSMessageWriter()
    writer.record(.answer, type: 1, owner: { $0.pointer(to: 12) }, data: { $0.raw([127, 0, 0, 1]) })
    return writer.bytes
  }

  /// Returns a message as it is sent over TCP, with its length in two octets before it.
  private func framed(_ message: [UInt8]) -> [UInt8] {
    [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
  }
}

/// Two connected sockets. The test plays c-ares at `ours` and the name server at `theirs`.
private final class AresSocketPair {
  /// The outcome of a read: the octets, or errno. No octets mean the end of a TCP connection.
  enum Received: Equatable {
    case octets([UInt8])
    case failed(Int32)
  }

  /// The object under test, to which `ours` belongs.
  let sockets = AresSockets()
  private let type: __socket_type
  private(set) var ours: Int32 = -1
  /// -1 after `closeTheirs`.
  private(set) var theirs: Int32 = -1

  /// - Parameter type: SOCK_DGRAM for UDP sockets, SOCK_STREAM for a stream that stands for a TCP connection.
  init(_ type: __socket_type) throws {
    self.type = type
    try open()
  }

  deinit {
    close(ours)
    closeTheirs()
  }

  private func open() throws {
    let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    if type == SOCK_STREAM {
      var ends: [Int32] = [-1, -1]
      let status = socketpair(AF_UNIX, Int32(type.rawValue) | flags, 0, &ends)
      guard status == 0 else { throw TestSupportError("no pair of sockets") }
      (ours, theirs) = (ends[0], ends[1])
    } else {
      // A socketpair(2) of datagram sockets queues only 10 datagrams. UDP sockets queue some hundreds.
      ours = socket(AF_INET, Int32(type.rawValue) | flags, 0)
      theirs = socket(AF_INET, Int32(type.rawValue) | flags, 0)
      var (address, length) = (sockaddr(), socklen_t(MemoryLayout<sockaddr>.size))
      for descriptor in [ours, theirs] {
        // Any port of 127.0.0.1.
        address = sockaddr(
          sa_family: sa_family_t(AF_INET), sa_data: (0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0))
        #expect(bind(descriptor, &address, length) == 0)
      }
      for (descriptor, other) in [(ours, theirs), (theirs, ours)] {
        #expect(getsockname(other, &address, &length) == 0)
        #expect(connect(descriptor, &address, length) == 0)
      }
    }
    sockets.opened(ours, type: Int32(type.rawValue))
  }

  /// Closes both sockets, and opens a new pair. Closes `ours` with the function that c-ares calls. Expects
  /// that the new `ours` has the descriptor of the old one.
  func reopen() throws {
    let before = ours
    _ = sockets.functions.pointee.aclose?(ours, sockets.argument)
    closeTheirs()
    try open()
    #expect(ours == before)
  }

  func closeTheirs() {
    if theirs >= 0 { close(theirs) }
    theirs = -1
  }

  /// Sends octets from the name server to c-ares.
  func write(_ octets: some Sequence<UInt8>) {
    let octets = Array(octets)
    #expect(Glibc.send(theirs, octets, octets.count, Int32(MSG_NOSIGNAL)) == octets.count)
  }

  /// Sends octets from c-ares to the name server, with the function that c-ares calls. Returns the number of
  /// octets sent, or -1.
  func send(_ octets: [UInt8]) -> Int? {
    var octets = octets
    return octets.withUnsafeMutableBytes { bytes in
      var piece = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
      return sockets.functions.pointee.asendv?(ours, &piece, 1, sockets.argument)
    }
  }

  /// Reads at most `count` octets from `ours`, with the function that c-ares calls.
  func read(_ count: Int) -> Received {
    var bytes = [UInt8](repeating: 0, count: count)
    let count = sockets.functions.pointee.arecvfrom?(ours, &bytes, count, 0, nil, nil, sockets.argument) ?? -1
    return count < 0 ? .failed(errno) : .octets(Array(bytes[..<count]))
  }
}
