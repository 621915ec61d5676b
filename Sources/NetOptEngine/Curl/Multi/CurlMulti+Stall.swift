import CCurl
import NetOptCore

// A connection whose peer has vanished without closing it accepts every request and lets the request time
// out. Over HTTP/2 only the stream ends with the call, so the next call would use the same connection.

extension CurlMulti {
  /// Records that a call timed out after its request was sent. When two calls in a row have timed out and no
  /// byte arrived on the connection meanwhile, ends the connection with all its streams.
  func noteStall(of transfer: Transfer) {
    let now = loop.now()
    guard let sent = transfer.readyAt, let descriptor = connections.socket(of: transfer),
      let path = Self.path(of: descriptor)
    else { return }
    // A response takes at least one round trip. So a call whose deadline came within two round trips says
    // nothing about the connection.
    guard now - sent >= path.twoRoundTrips else { return }
    if connections.stalled(descriptor, sent: sent, lastByte: now + (.zero - path.silence), at: now),
      let connection = callbackState.live[descriptor]
    {
      connection.isSilent = true
      connection.end()
    }
  }

  /// How long nothing has arrived on a connection, and an upper bound for the time of two round trips. The
  /// kernel measures both (tcp(7), TCP_INFO), so netopt keeps no record.
  private static func path(of descriptor: Int32) -> (silence: Duration, twoRoundTrips: Duration)? {
    guard let information = information(of: descriptor) else { return nil }
    let roundTrip = Int64(information.tcpi_rtt) + 4 * Int64(information.tcpi_rttvar)
    return (.milliseconds(information.tcpi_last_data_recv), .microseconds(2 * roundTrip))
  }

  /// How long nothing has arrived on a connection, and whether the data sent on it was acknowledged or lost.
  static func progress(of descriptor: Int32) -> (silence: Duration, delivery: WaitingRequest.Delivery)? {
    guard let information = information(of: descriptor) else { return nil }
    // `tcpi_retransmits` counts the retransmission timeouts in a row. Each acknowledgement resets the count.
    let isRepeated = information.tcpi_retransmits >= 2
    return (
      .milliseconds(information.tcpi_last_data_recv),
      information.tcpi_unacked == 0 ? .acknowledged : isRepeated ? .lost : .pending
    )
  }

  /// What the kernel knows about a TCP connection (TCP_INFO); `nil` if the descriptor is no TCP socket.
  private static func information(of descriptor: Int32) -> tcp_info? {
    var information = tcp_info()
    var length = socklen_t(MemoryLayout<tcp_info>.size)
    return getsockopt(descriptor, netopt_tcp, TCP_INFO, &information, &length) == 0
      ? information : nil
  }
}

/// Detects a dead connection: two calls in a row timed out on it, and no byte arrived on it meanwhile.
///
/// Of calls that were under way together, only the first counts: many calls that are sent at once all time
/// out during one pause of the server.
struct Stalls: Sendable {
  /// The largest error of `lastByte`. The kernel gives the time since the last byte (TCP_INFO), and measures
  /// it with a coarser clock than the loop's.
  private static let tolerance = Duration.milliseconds(10)
  /// A call counts only if it timed out at least this long after its request was sent.
  private static let shortest = Duration.milliseconds(50)

  /// When the first call of the present row of timeouts timed out. A row ends when a byte arrives on the
  /// connection. `nil` before any call has timed out.
  private var last: MonotonicInstant?

  /// Records that a call timed out. The call does not count if a byte arrived on the connection after its
  /// request was sent.
  ///
  /// - Parameters:
  ///   - sent: when the call's request was sent.
  ///   - lastByte: when the last byte arrived on the connection.
  /// - Returns: whether this is the second timeout in a row: the request was sent after the first call of the
  ///   row timed out, and no byte has arrived since.
  mutating func record(sent: MonotonicInstant, lastByte: MonotonicInstant, at now: MonotonicInstant) -> Bool {
    guard now - sent >= Self.shortest, lastByte - sent < Self.tolerance else { return false }
    // If a byte arrived after the first timeout of the row, this timeout begins a new row. `lastByte` may be
    // wrong by `tolerance`. In case of doubt, the byte counts as arrived after the first timeout.
    guard let last, last - lastByte > Self.tolerance else {
      self.last = now
      return false
    }
    return sent >= last
  }
}
