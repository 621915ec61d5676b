import Glibc
import NetOptCore
import NetOptEngine
import NetOptTestSupport

/// A name server on loopback that behaves in ways that dnsmasq does not. It refuses all queries with a
/// response code, answers only when the test asks for it, or sends answers that the test makes.
final class FakeNameServer: ReadinessHandler, LoopWork {
  /// What the server does with a query that arrives over UDP. Only `stream` also answers over TCP; otherwise
  /// the server closes a TCP connection when a query arrives.
  enum Behaviour: Sendable {
    /// Answers at once with this response code (RFC 1035, section 4.1.1) and no records.
    case code(UInt8)
    /// Does not answer by itself. The test calls `answer(with:)` to answer the queries received so far.
    case holding
    /// Answers at once with the datagrams that the closure makes from the query.
    case datagrams(@Sendable ([UInt8]) -> [[UInt8]])
    /// Answers over UDP with a message that says that the answer is truncated, so that the client queries
    /// again over TCP. Answers over TCP with the message that the closure makes from the query.
    case stream(@Sendable ([UInt8]) -> [UInt8])
  }

  /// A query that arrived over UDP.
  private struct Question: Sendable {
    /// The whole DNS message.
    let bytes: [UInt8]
    let sender: sockaddr_in
  }

  /// Where the server receives queries, over UDP and TCP.
  let endpoint: IPEndpoint
  private let behaviour: Behaviour
  /// The server's own event loop.
  private let loop: EventLoop
  /// The UDP socket.
  private let descriptor: Int32
  /// The socket that listens for TCP connections.
  private let listener: Int32
  /// The queries received over UDP.
  private let questions = EventRecorder<Question>()

  /// The number of queries received over UDP.
  var questionCount: Int { questions.events.count }

  init(_ behaviour: Behaviour) throws {
    self.behaviour = behaviour
    loop = try EventLoop(name: "name-server")
    endpoint = IPEndpoint(.loopback, port: try FreePort.find(on: [.loopback]))
    listener = try LoopbackSocket.listening(on: endpoint)
    let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    descriptor = socket(AF_INET, kind, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = endpoint.port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let bound = withSocketAddress(of: &address) { [descriptor] in bind(descriptor, $0, $1) }
    guard bound == 0 else { throw TestSupportError("no socket for a name server") }
    _ = loop.submit(self)
  }

  /// Begins to watch the sockets. Runs on the server's loop.
  func run() {
    loop.watch(descriptor, for: .read, self)
    loop.watch(listener, for: .read, self)
  }

  /// Receives a query over UDP and acts by `behaviour`. Calls `serve` for all other sockets.
  func ready(_ descriptor: Int32, for readiness: Readiness) {
    if descriptor != self.descriptor { return serve(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 512)
    var sender = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withSocketAddress(of: &sender) { pointer, _ in
      recvfrom(descriptor, &bytes, bytes.count, 0, pointer, &length)
    }
    guard count > 0 else { return }
    let question = Question(bytes: Array(bytes.prefix(count)), sender: sender)
    questions.record(question)
    switch behaviour {
    case .code(let code):
      send(Self.response(to: question.bytes, code: code), to: question.sender)
    case .datagrams(let answers):
      for answer in answers(question.bytes) { send(answer, to: question.sender) }
    case .stream:
      var response = Self.response(to: question.bytes, code: 0)
      // The TC bit: the answer is truncated.
      response[2] |= 2
      send(response, to: question.sender)
    case .holding:
      break
    }
  }

  /// Accepts a TCP connection, or answers the queries that arrived on a connection.
  private func serve(_ descriptor: Int32) {
    if descriptor == listener {
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else { return }
      _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
      return loop.watch(connection, for: .read, self)
    }
    // The server expects that a query arrives in one piece. Two queries may arrive together.
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    guard count > 2, case .stream(let answer) = behaviour else {
      loop.unwatch(descriptor, of: self)
      close(descriptor)
      return
    }
    var rest = bytes[..<count]
    while rest.count > 2 {
      let question = rest.dropFirst(2).prefix(
        Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1]))
      rest = rest[question.endIndex...]
      let response = answer(Array(question))
      let message = [UInt8(response.count >> 8), UInt8(response.count & 0xff)] + response
      var sent = 0
      while sent < message.count {
        let more = message[sent...].withUnsafeBytes {
          Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard more > 0 else { return }
        sent += more
      }
    }
  }

  /// Waits until the server has received this many queries over UDP.
  func wait(forQuestions count: Int) async throws {
    try await questions.wait(for: "\(count) questions") { $0.count >= count }
  }

  /// Answers all queries so far: queries for A records with the address, other queries without an address.
  func answer(with address: IPAddress) {
    for question in questions.events {
      send(Self.response(to: question.bytes, code: 0, address: address), to: question.sender)
    }
  }

  /// Ends the server's loop and closes its sockets, but not the accepted TCP connections.
  func stop() {
    loop.stop()
    close(descriptor)
    close(listener)
  }

  private func send(_ bytes: [UInt8], to receiver: sockaddr_in) {
    var receiver = receiver
    _ = withSocketAddress(of: &receiver) { sendto(descriptor, bytes, bytes.count, 0, $0, $1) }
  }

  /// Returns the answer to a query (RFC 1035, section 4.1).
  ///
  /// - Parameters:
  ///   - code: the response code; 0 for success.
  ///   - address: an IPv4 address. If the query is for A records, the answer has one record with this
  ///     address. Otherwise, and without an address, the answer has no record.
  private static func response(to query: [UInt8], code: UInt8, address: IPAddress? = nil) -> [UInt8] {
    // The name of the question ends with an empty label. The type and the class follow, two octets each.
    let endOfName = query.dropFirst(12).firstIndex(of: 0) ?? 12
    let question = query[12..<(endOfName + 5)]
    let isForAddress = query[endOfName + 2] == 1
    let answers: UInt8 = isForAddress && address != nil ? 1 : 0
    var response = query[0..<2] + [0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0] + question
    if answers > 0, let address {
      // A pointer to the name in the question, an A record, 60 s, 4 bytes.
      response += [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4] + address.bytes
    }
    return Array(response)
  }
}

/// Calls a closure with a pointer to an address, as the type that the socket functions take, and with the
/// size of the address in bytes.
private func withSocketAddress<Result>(
  of address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Result
) -> Result {
  withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}
