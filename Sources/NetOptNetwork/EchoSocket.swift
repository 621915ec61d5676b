import CNetwork
import Glibc
import NetOptCore

/// A socket for ICMP that is connected to one address. Whoever made it closes it.
struct EchoSocket {
  let descriptor: Int32
  /// This machine's address on the way.
  let local: IPAddress
  /// The identifier that the kernel gives what is sent; `nil` when it leaves the sender's.
  let identifier: UInt16?
  private let address: IPAddress
  private let hasPacketHeader: Bool

  /// Opens and connects a socket. Nothing is sent.
  ///
  /// - Throws: `other` with what to do when this process may have none, `unreachable` without a way to the address.
  init(to address: IPAddress) throws(LegError) {
    let isV4 = address.family == .v4
    let domain = isV4 ? AF_INET : AF_INET6
    let icmp = Int32(isV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)
    let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    var isRaw = false
    var opened = socket(domain, Int32(SOCK_DGRAM.rawValue) | flags, icmp)
    if opened < 0 {
      isRaw = true
      opened = socket(domain, Int32(SOCK_RAW.rawValue) | flags, icmp)
    }
    guard opened >= 0 else { throw Self.refused(errno) }
    if isRaw {
      _ = isV4 ? netopt_only_echo_replies_v4(opened) : netopt_only_echo_replies_v6(opened)
    }
    // Errors that come back are then told at once (ip(7), ipv6(7)).
    var yes: Int32 = 1
    setsockopt(
      opened, Int32(isV4 ? IPPROTO_IP : IPPROTO_IPV6), isV4 ? IP_RECVERR : IPV6_RECVERR, &yes,
      socklen_t(MemoryLayout<Int32>.size))
    guard SocketAddress.connect(opened, to: Endpoint(address, port: 0)) == 0,
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

  /// Sends a message.
  func send(_ bytes: [UInt8]) throws(LegError) {
    let count = bytes.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    if count < 0 { throw Self.failed(address, errno) }
  }

  /// The next ICMP message that has come; `nil` when there is none yet.
  ///
  /// - Throws: `unreachable` when an error came back instead.
  func receive() throws(LegError) -> ArraySlice<UInt8>? {
    var buffer = [UInt8](repeating: 0, count: 1500)
    while true {
      var source = sockaddr_in6()
      var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      let capacity = buffer.count
      let count = withUnsafeMutableBytes(of: &source) { source in
        source.withMemoryRebound(to: sockaddr.self) {
          recvfrom(descriptor, &buffer, capacity, 0, $0.baseAddress, &length)
        }
      }
      if count < 0 {
        switch errno {
        case EINTR: continue
        case EAGAIN: return nil
        default: throw Self.failed(address, errno)
        }
      }
      // A datagram socket gets what bears its identifier, whoever it is from, although it is connected.
      let sender = withUnsafeBytes(of: &source) { IPAddress(socketAddress: $0.baseAddress) }
      guard sender == address else { return [] }
      let bytes = buffer[..<count]
      // What is no ICMP message is no reply either.
      return hasPacketHeader ? EchoMessage.message(inPacket: bytes) ?? [] : bytes
    }
  }

  func close() { Glibc.close(descriptor) }

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

  private static func failed(_ address: IPAddress, _ code: Int32) -> LegError {
    LegError(
      LegFailure(.unreachable, "\(address) cannot be reached by ICMP: \(String(cString: strerror(code)))"))
  }
}
