import CCurl
import NetOptCore

// A connection whose other side is gone without a word takes every request that comes, and lets it time out. HTTP/2 has
// only the stream ended with the call, so the next call would go the same way.

extension CurlMulti {
  /// A call's time was over when it had been sent. When it is the second one in a row during which not a byte came on the
  /// connection, the connection is retired with all that is on it.
  func noteStall(of transfer: Transfer) {
    let now = loop.now()
    guard let sent = transfer.readyAt, let descriptor = connections.socket(of: transfer),
      let path = Self.path(of: descriptor)
    else { return }
    // A call that was given less than its answer takes says nothing about the connection.
    guard now - sent >= path.twoRoundTrips else { return }
    if connections.stalled(descriptor, sent: sent, lastByte: now + (.zero - path.silence), at: now),
      let connection = records.live[descriptor]
    {
      connection.isSilent = true
      connection.end()
    }
  }

  /// For how long nothing has come on a connection, and what two round trips take at most (tcp(7), TCP_INFO): the kernel
  /// knows, so nobody has to keep a record.
  private static func path(of descriptor: Int32) -> (silence: Duration, twoRoundTrips: Duration)? {
    guard let information = information(of: descriptor) else { return nil }
    let roundTrip = Int64(information.tcpi_rtt) + 4 * Int64(information.tcpi_rttvar)
    return (.milliseconds(information.tcpi_last_data_recv), .microseconds(2 * roundTrip))
  }

  /// For how long nothing has come on a connection, and how far what was sent on it has come.
  static func progress(of descriptor: Int32) -> (silence: Duration, delivery: WaitingRequest.Delivery)? {
    guard let information = information(of: descriptor) else { return nil }
    // The count of timeouts in a row begins anew with each acknowledgement.
    let isRepeated = information.tcpi_retransmits >= 2
    return (
      .milliseconds(information.tcpi_last_data_recv),
      information.tcpi_unacked == 0 ? .acknowledged : isRepeated ? .lost : .pending
    )
  }

  private static func information(of descriptor: Int32) -> tcp_info? {
    var information = tcp_info()
    var length = socklen_t(MemoryLayout<tcp_info>.size)
    return getsockopt(descriptor, netopt_tcp, TCP_INFO, &information, &length) == 0
      ? information : nil
  }
}

/// The calls that timed out on a connection.
///
/// Of calls that were under way together the first counts: many that are sent at once all time out during one pause of the
/// server's.
struct Stalls: Sendable {
  /// What the kernel's clock for this may be off.
  private static let tolerance = Duration.milliseconds(10)
  /// Calls that were given less say nothing about the connection.
  private static let shortest = Duration.milliseconds(50)

  private var last: MonotonicInstant?

  /// A call timed out.
  ///
  /// - Parameters:
  ///   - sent: when its request was.
  ///   - lastByte: when the last byte came on the connection.
  /// - Returns: whether it is the second in a row.
  mutating func noted(sent: MonotonicInstant, lastByte: MonotonicInstant, at now: MonotonicInstant) -> Bool {
    guard now - sent >= Self.shortest, lastByte - sent < Self.tolerance else { return false }
    // Where the clock's error leaves it open whether a byte came between the two, it did.
    guard let last, last - lastByte > Self.tolerance else {
      self.last = now
      return false
    }
    return sent >= last
  }
}
