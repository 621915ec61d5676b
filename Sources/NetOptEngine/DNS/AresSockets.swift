import CAres
import Glibc

/// The sockets of a c-ares channel, and the functions through which c-ares uses them
/// (ares_set_socket_functions(3)).
///
/// c-ares reads datagrams as long as they arrive, and most versions expand the names in a message far beyond
/// the limit of the DNS. This class checks each message (`DNSMessage`) before c-ares reads it, and limits the
/// number of messages that c-ares reads from a readable socket in a turn of the loop. Confined to the loop's
/// thread, like the channel.
final class AresSockets {
  /// The most messages that this class reads for one readable socket in a turn, refused datagrams included.
  /// After that, c-ares gets EAGAIN. The socket stays readable, and the loop reports it again in the next
  /// turn.
  static let mostMessages = 64

  /// The C structure with the functions that c-ares calls. c-ares keeps this pointer, and passes `argument`
  /// to the functions. This object must outlive the channel, so `AresHandle` owns both.
  let functions: UnsafeMutablePointer<ares_socket_functions>

  /// The TCP connections by descriptor.
  private var streams: [Int32: DNSStream] = [:]
  /// The number of messages that c-ares may still read before the next `beginReading`.
  private var messagesLeft = 0
  /// The number of octets that c-ares has read from TCP connections since the object was made.
  private(set) var taken = 0

  init() {
    functions = .allocate(capacity: 1)
    functions.initialize(to: Self.callbacks)
  }

  deinit { functions.deallocate() }

  /// The argument that c-ares passes to the functions: an unretained pointer to this object.
  var argument: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// Allows c-ares to read `mostMessages` messages. The channel calls this when a socket is ready, or when a
  /// timeout has passed.
  func beginReading() { messagesLeft = Self.mostMessages }

  /// Whether c-ares has still to read octets of a checked message on a TCP connection. This object has read
  /// them from the socket, so epoll does not report them.
  func hasUnread(_ descriptor: Int32) -> Bool { streams[descriptor]?.isWhole == true }

  /// Records a socket that was opened for c-ares.
  ///
  /// - Parameter type: the socket's type. A stream socket (SOCK_STREAM) is a TCP connection.
  func opened(_ descriptor: Int32, type: Int32) {
    if type == netopt_ares_stream { streams[descriptor] = DNSStream() }
  }

  // MARK: Functions that c-ares calls

  /// The outcome of a read: a number of octets, or errno.
  private enum Received {
    case octets(Int)
    case failed(Int32)
  }

  private func open(_ family: Int32, _ type: Int32, _ protocolNumber: Int32) -> Int32 {
    // c-ares sets no options on a socket that these functions open. So this function sets the options that
    // c-ares sets on its own sockets.
    let flags = netopt_ares_socket_flags
    let descriptor = socket(family, type | flags, protocolNumber)
    guard descriptor >= 0 else { return -1 }
    if type == netopt_ares_stream {
      var on: Int32 = 1
      // When this call fails, queries still leave, but possibly later.
      _ = setsockopt(descriptor, netopt_ares_tcp, TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }
    opened(descriptor, type: type)
    return descriptor
  }

  private func close(_ descriptor: Int32) -> Int32 {
    // The system may reuse the number for another socket at once.
    streams[descriptor] = nil
    return Glibc.close(descriptor)
  }

  /// Reads a datagram, or a part of a message from a TCP connection. Drops the datagrams that `DNSMessage`
  /// refuses.
  private func receive(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, flags: Int32,
    from sender: UnsafeMutablePointer<sockaddr>?, _ senderLength: UnsafeMutablePointer<socklen_t>?
  ) -> Received {
    if streams[descriptor] != nil { return receive(descriptor, into: buffer) }
    let room = senderLength?.pointee
    while messagesLeft > 0 {
      messagesLeft -= 1
      if let room { senderLength?.pointee = room }
      let count = recvfrom(descriptor, buffer.baseAddress, buffer.count, flags, sender, senderLength)
      guard count >= 0 else { return .failed(errno) }
      let message = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      if message.withMemoryRebound(to: UInt8.self, { DNSMessage.hasBoundedNames($0.span) }) {
        return .octets(count)
      }
      // The message is dropped, as if the network had lost it. The real answer may come after it.
    }
    return .failed(EAGAIN)
  }

  /// Reads a part of a message from a TCP connection.
  private func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Received {
    if streams[descriptor]?.isWhole == false {
      guard messagesLeft > 0 else { return .failed(EAGAIN) }
      switch streams[descriptor]?.read(from: descriptor) {
      case .whole: messagesLeft -= 1
      case .ended: return .octets(0)
      case .failed(let code): return .failed(code)
      case nil: return .failed(EBADF)
      }
    }
    let count = streams[descriptor]?.copy(to: buffer) ?? 0
    taken += count
    return .octets(count)
  }

  /// Sends the pieces of a query that c-ares passes, with one call of sendmsg(2).
  private func send(_ descriptor: Int32, _ pieces: UnsafePointer<iovec>?, _ count: Int32) -> Int {
    var message = msghdr()
    message.msg_iov = UnsafeMutablePointer(mutating: pieces)
    message.msg_iovlen = Int(count)
    // A write to a connection that the server has closed fails with an error. It raises no signal.
    return sendmsg(descriptor, &message, netopt_ares_no_signal)
  }

  /// The functions of ares_set_socket_functions(3).
  private static let callbacks = ares_socket_functions(
    asocket: { family, type, protocolNumber, argument in
      AresSockets.of(argument)?.open(family, type, protocolNumber) ?? -1
    },
    aclose: { descriptor, argument in
      AresSockets.of(argument)?.close(descriptor) ?? -1
    },
    aconnect: { descriptor, address, length, _ in
      connect(descriptor, address, length)
    },
    arecvfrom: { descriptor, buffer, length, flags, sender, senderLength, argument in
      guard let sockets = AresSockets.of(argument) else { return -1 }
      let room = UnsafeMutableRawBufferPointer(start: buffer, count: length)
      switch sockets.receive(descriptor, into: room, flags: flags, from: sender, senderLength) {
      case .octets(let count):
        return count
      case .failed(let code):
        errno = code
        return -1
      }
    },
    asendv: { descriptor, pieces, count, argument in
      AresSockets.of(argument)?.send(descriptor, pieces, count) ?? -1
    })

  /// The object to which `argument` points. The object is alive: c-ares calls these functions only while
  /// netopt's code calls c-ares for the channel, and the channel's handle owns the object.
  private static func of(_ argument: UnsafeMutableRawPointer?) -> AresSockets? {
    argument.map { Unmanaged<AresSockets>.fromOpaque($0).takeUnretainedValue() }
  }
}
