import CNetwork
import Glibc
import NetOptCore

/// An ICMP socket that is connected to one address, for echo requests. The code that creates the socket must
/// close it.
struct EchoSocket {
  /// The file descriptor, in non-blocking mode.
  let descriptor: Int32
  /// The source address of the requests: this machine's address on the route to `address`. The kernel chose
  /// it when the socket was connected.
  let local: IPAddress
  /// The identifier that the kernel writes into each request of a datagram socket. `nil` for a raw socket:
  /// the kernel then keeps the identifier of the `EchoMessage`.
  let identifier: UInt16?
  /// The address to which the socket is connected.
  private let address: IPAddress
  /// Whether each received message has the header of its IPv4 packet before it. A raw IPv4 socket delivers
  /// whole packets (raw(7)).
  private let hasPacketHeader: Bool

  /// Opens and connects a socket. Sends nothing.
  ///
  /// - Throws: `other` with a remedy when this process may not open an ICMP socket; `unreachable` when there
  ///   is no route to the address.
  init(to address: IPAddress) throws(LegError) {
    let isV4 = address.family == .v4
    let domain = isV4 ? AF_INET : AF_INET6
    let icmp = isV4 ? netopt_protocol_icmp : netopt_protocol_icmpv6
    let flags = netopt_socket_close_on_exec | netopt_socket_nonblocking
    var isRaw = false
    var opened = socket(domain, netopt_socket_datagram | flags, icmp)
    if opened < 0 {
      isRaw = true
      opened = socket(domain, netopt_socket_raw | flags, icmp)
    }
    guard opened >= 0 else { throw Self.refused(errno) }
    if isRaw {
      _ = isV4 ? netopt_only_echo_replies_v4(opened) : netopt_only_echo_replies_v6(opened)
    }
    // With this option, the kernel reports ICMP errors at once (ip(7), ipv6(7)).
    var yes: Int32 = 1
    setsockopt(
      opened, isV4 ? netopt_protocol_ip : netopt_protocol_ipv6, isV4 ? IP_RECVERR : IPV6_RECVERR, &yes,
      socklen_t(MemoryLayout<Int32>.size))
    guard SocketAddress.connect(opened, to: IPEndpoint(address, port: 0)) == 0,
      let local = SocketAddress.local(of: opened)
    else {
      let code = errno
      Glibc.close(opened)
      throw Self.failed(address, code)
    }
    descriptor = opened
    self.local = local
    self.address = address
    hasPacketHeader = isRaw && isV4
    identifier = isRaw ? nil : SocketAddress.localPort(of: opened)
  }

  /// The most times that one call of `send` or `receive` tries the system call. A pending ICMP error about
  /// another program's packet makes the system call fail, and so does a signal. Neither concerns the request.
  private static let mostForeignErrors = 64

  /// Sends a request.
  ///
  /// - Throws: `unreachable` when the kernel refuses to send the request.
  func send(_ message: EchoMessage) throws(LegError) {
    let bytes = message.request(address.family)
    for _ in 0..<Self.mostForeignErrors {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, netopt_message_no_signal)
      }
      if count >= 0 { return }
      let code = errno
      // A pending error made send(2) fail before the request left. No ICMP error can be about this request
      // yet, so each one is about a packet of another program, and the loop sends again.
      if code == EINTR { continue }
      guard let error = nextError(), !error.isOwn else { throw Self.failed(address, code) }
    }
    throw Self.failed(address, EAGAIN)
  }

  /// Receives the next ICMP message.
  ///
  /// - Parameter message: the request. A raw socket receives every ICMP error about an ICMP packet to its
  ///   address, including packets of other programs; this function skips those errors.
  /// - Returns: the bytes of the message, without an IP header. `nil` when no message has arrived. An empty
  ///   slice for a message from another sender and for a packet that is not ICMP: neither is the reply.
  /// - Throws: `unreachable` when an ICMP error about the request arrived.
  func receive(for message: EchoMessage) throws(LegError) -> ArraySlice<UInt8>? {
    var buffer = [UInt8](repeating: 0, count: 1500)
    for _ in 0..<Self.mostForeignErrors {
      var source = sockaddr_in6()
      var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      let capacity = buffer.count
      let count = withUnsafeMutableBytes(of: &source) { source in
        source.withMemoryRebound(to: sockaddr.self) {
          recvfrom(descriptor, &buffer, capacity, 0, $0.baseAddress, &length)
        }
      }
      if count < 0 {
        let code = errno
        if code == EINTR { continue }
        while let error = nextError() {
          if error.isOwn
            || message.isQuoted(
              by: error.quoted, identifier: identifier ?? message.identifier, address.family)
          {
            throw Self.failed(address, error.code)
          }
        }
        // The error queue showed which packet each error is about. The error that recvfrom(2) returned
        // repeats the last of these errors, and recvfrom returns it only once.
        if code == EAGAIN { return nil }
        continue
      }
      // A datagram socket receives every message with its identifier, from any sender, although the socket is
      // connected.
      let sender = withUnsafeBytes(of: &source) { IPAddress(socketAddress: $0.baseAddress) }
      guard sender == address else { return [] }
      let bytes = buffer[..<count]
      // A packet that is not an ICMP message is not a reply either.
      return hasPacketHeader ? EchoMessage.message(inPacket: bytes) ?? [] : bytes
    }
    return nil
  }

  /// An entry of the socket's error queue: an error about a packet that this machine sent.
  private struct QueuedError {
    /// The error number, as in errno(3).
    let code: Int32
    /// Whether the kernel of this machine found the error itself (SO_EE_ORIGIN_LOCAL), without an ICMP
    /// message. Such an error is always about a packet of this socket.
    let isOwn: Bool
    /// The beginning of the packet that caused the error, without its IP header.
    let quoted: ArraySlice<UInt8>
  }

  /// Takes the next error from the socket's error queue (`IP_RECVERR` in ip(7), `IPV6_RECVERR` in ipv6(7));
  /// `nil` when the queue is empty.
  private func nextError() -> QueuedError? {
    var quoted = [UInt8](repeating: 0, count: 1500)
    // An array of `Int`, because control messages are aligned like a C `long` (cmsg(3)).
    var control = [Int](repeating: 0, count: 64)
    var header = msghdr()
    let count = quoted.withUnsafeMutableBytes { quoted in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: quoted.baseAddress, iov_len: quoted.count)
        return withUnsafeMutablePointer(to: &part) { part in
          header.msg_iov = part
          header.msg_iovlen = 1
          header.msg_control = control.baseAddress
          header.msg_controllen = control.count
          return recvmsg(descriptor, &header, netopt_message_errors | netopt_message_no_wait)
        }
      }
    }
    guard count >= 0 else { return nil }
    let error = control.withUnsafeBytes { control -> sock_extended_err? in
      let headerSize = MemoryLayout<cmsghdr>.stride
      var start = 0
      while start + headerSize <= header.msg_controllen {
        let part = control.loadUnaligned(fromByteOffset: start, as: cmsghdr.self)
        let isError =
          part.cmsg_level == netopt_protocol_ip && part.cmsg_type == IP_RECVERR
          || part.cmsg_level == netopt_protocol_ipv6 && part.cmsg_type == IPV6_RECVERR
        if isError, start + headerSize + MemoryLayout<sock_extended_err>.size <= control.count {
          return control.loadUnaligned(fromByteOffset: start + headerSize, as: sock_extended_err.self)
        }
        // The next control message starts at the alignment of a C `long` (CMSG_ALIGN).
        start += max((Int(part.cmsg_len) + 7) & ~7, headerSize)
      }
      return nil
    }
    guard let error else { return QueuedError(code: 0, isOwn: false, quoted: []) }
    return QueuedError(
      code: Int32(error.ee_errno), isOwn: error.ee_origin == UInt8(SO_EE_ORIGIN_LOCAL),
      quoted: quoted[..<count])
  }

  func close() { Glibc.close(descriptor) }

  /// The error when an ICMP socket cannot be opened, or this process may not open one. `code` is the errno of
  /// socket(2).
  private static func refused(_ code: Int32) -> LegError {
    guard code == EPERM || code == EACCES else {
      return LegError(
        LegFailure(.other, "no socket for ICMP could be opened: \(String(cString: strerror(code)))"))
    }
    return LegError(
      LegFailure(
        .other,
        "this process may not send ICMP; put its group into the range net.ipv4.ping_group_range (sysctl), or give the program CAP_NET_RAW (setcap cap_net_raw+ep), or probe with tcp or tls"
      ))
  }

  /// The error when the address cannot be reached. `code` is the errno of a system call or a `QueuedError`.
  private static func failed(_ address: IPAddress, _ code: Int32) -> LegError {
    LegError(
      LegFailure(.unreachable, "\(address) cannot be reached by ICMP: \(String(cString: strerror(code)))"))
  }
}
