package import Glibc
package import NetOptCore

/// The socket calls of the test servers and test clients. Descriptors are plain numbers that nothing closes
/// automatically: whoever gets a descriptor from these functions must close it.
package enum LoopbackSocket {
  /// Opens a non-blocking listening socket and returns its descriptor.
  ///
  /// - Parameter backlog: the maximum length of the accept queue: listen(2).
  package static func listening(on endpoint: IPEndpoint, backlog: Int32 = 512) throws -> Int32 {
    let descriptor = try open(endpoint.address.family, SOCK_STREAM)
    var yes: Int32 = 1
    // With this option, a restarted server can bind its port while old connections are in TIME_WAIT.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    guard withAddress(of: endpoint, { bind(descriptor, $0, $1) }) == 0, listen(descriptor, backlog) == 0
    else {
      let code = errno
      close(descriptor)
      throw systemError("\(endpoint) cannot be listened on", code: code)
    }
    return descriptor
  }

  /// Starts to connect to an endpoint and returns the descriptor of the socket. Does not wait for the
  /// handshake.
  package static func connecting(to endpoint: IPEndpoint) throws -> Int32 {
    let descriptor = try open(endpoint.address.family, SOCK_STREAM)
    guard withAddress(of: endpoint, { connect(descriptor, $0, $1) }) == 0 || errno == EINPROGRESS else {
      let code = errno
      close(descriptor)
      throw systemError("\(endpoint) cannot be connected to", code: code)
    }
    return descriptor
  }

  /// Whether a TCP socket and a UDP socket can be bound to the endpoint.
  static func isFree(_ endpoint: IPEndpoint) -> Bool {
    [SOCK_STREAM, SOCK_DGRAM].allSatisfy { type in
      guard let descriptor = try? open(endpoint.address.family, type) else { return false }
      defer { close(descriptor) }
      return withAddress(of: endpoint) { bind(descriptor, $0, $1) } == 0
    }
  }

  /// Returns the port of a listening socket.
  package static func port(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    withUnsafeMutableBytes(of: &address) { bytes in
      _ = getsockname(descriptor, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &length)
    }
    // The port has the same offset in sockaddr_in and sockaddr_in6.
    return UInt16(bigEndian: address.sin6_port)
  }

  /// Closes the descriptor so that TCP sends RST instead of FIN: SO_LINGER in socket(7).
  package static func reset(_ descriptor: Int32) {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
    close(descriptor)
  }

  /// Waits for events with poll(2). A signal does not end the wait.
  ///
  /// - Parameters:
  ///   - descriptors: the descriptors, each with the events to wait for. On return, their `revents` have the
  ///     events that occurred.
  ///   - limit: the longest time to wait; `nil` for no limit.
  /// - Returns: the number of descriptors with events; 0 when `limit` passed first.
  @discardableResult
  package static func wait(_ descriptors: inout [pollfd], limit: Duration? = nil) -> Int {
    let clock = SystemTimeSource()
    let end = limit.map { clock.now() + $0 }
    while true {
      let rest = end.map { max(0, ($0 - clock.now()).nanoseconds) }
      // One call of poll(2) waits 1000 s at most; the loop continues a longer wait. The time is rounded up,
      // because a limit of 0 ms would make the last millisecond a busy loop.
      let milliseconds = rest.map { Int32(min(($0 + 999_999) / 1_000_000, 1_000_000)) } ?? -1
      let count = poll(&descriptors, nfds_t(descriptors.count), milliseconds)
      if count > 0 { return Int(count) }
      if count == 0, let rest, rest <= Int64(milliseconds) * 1_000_000 { return 0 }
    }
  }

  /// Opens a non-blocking socket that child processes do not inherit.
  private static func open(_ family: IPAddress.Family, _ type: __socket_type) throws -> Int32 {
    let flags = Int32(type.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let descriptor = socket(family == .v4 ? AF_INET : AF_INET6, flags, 0)
    guard descriptor >= 0 else { throw systemError("no socket") }
    return descriptor
  }

  /// Calls a closure with the socket address of an endpoint, and with the size of this address in bytes.
  private static func withAddress<Result>(
    of endpoint: IPEndpoint, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    func call<Address>(_ address: Address) -> Result {
      withUnsafePointer(to: address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          body($0, socklen_t(MemoryLayout<Address>.size))
        }
      }
    }
    let bytes = endpoint.address.bytes
    switch endpoint.address.family {
    case .v4:
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = endpoint.port.bigEndian
      withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
      return call(address)
    case .v6:
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = endpoint.port.bigEndian
      withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
      return call(address)
    }
  }
}
