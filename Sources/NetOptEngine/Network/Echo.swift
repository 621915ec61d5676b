import CNetwork
import Glibc
package import NetOptCore
import Synchronization

/// One ICMP echo request (ping) on the event loop. The object is also the timer of its own timeout.
///
/// The socket is an ICMP datagram socket when `net.ipv4.ping_group_range` permits it (icmp(7)). Otherwise it
/// is a raw socket, which requires CAP_NET_RAW. The socket is connected to the address, so that the kernel
/// reports ICMP errors to it. A connected raw socket receives only packets from that address. `EchoSocket`
/// ignores replies from other senders on a datagram socket, and errors about the packets of other programs on
/// a raw socket.
///
/// Unchecked sendable: the caller makes the object, then the object is confined to the loop's thread.
package final class Echo: LoopTimer, LoopWork, ReadinessHandler, @unchecked Sendable {
  /// The round-trip time, or the reason why there is no reply.
  package typealias Outcome = Result<Duration, LegError>

  private let address: IPAddress
  /// How long to wait for the reply after the request was sent.
  private let limit: Duration
  private let loop: EventLoop
  private let message: EchoMessage
  /// Whether the caller's task was cancelled, perhaps before the object arrived on the loop.
  private let isCancelled = Atomic(false)
  /// The caller's suspended task, until the outcome is known.
  private var caller: CheckedContinuation<Void, Never>?
  /// The outcome. The loop writes it before it resumes the caller. It keeps its initial value if the loop has
  /// stopped and never runs this object.
  private var outcome = Outcome.failure(Echo.ended)
  /// Whether the loop has written `outcome`. The caller reads this flag before it reads `outcome`, so that
  /// the write comes before the read for the thread sanitizer too (docs/adr/0006).
  private let isAnswered = Atomic(false)
  /// The socket while the reply is awaited.
  private var socket: EchoSocket?
  /// When the request was sent, by the loop's clock; 0 before that.
  private var sent = MonotonicInstant(nanoseconds: 0)
  /// Whether the loop has called `run`. `run` itself handles a cancellation that came before it.
  private var hasArrived = false
  /// Whether `end` was called, so that the outcome is final.
  private var isOver = false

  private init(_ address: IPAddress, within limit: Duration, on loop: EventLoop) {
    self.address = address
    self.limit = limit
    self.loop = loop
    var random = SystemRandomNumberGenerator()
    message = EchoMessage(identifier: .random(in: .min ... .max), sequence: 1, using: &random)
  }

  /// Sends an echo request and waits for the reply.
  ///
  /// - Parameter limit: how long to wait for the reply after the request was sent.
  /// - Returns: the round-trip time, or the reason why there is no reply. When the task is cancelled,
  ///   `isInconclusive` of the `LegError` is true.
  package static func roundTrip(
    to address: IPAddress, within limit: Duration, on loop: EventLoop
  ) async -> Outcome {
    let echo = Echo(address, within: limit, on: loop)
    await withTaskCancellationHandler {
      // A checked continuation: if the loop resumes an unsafe one before this task is suspended, the thread
      // sanitizer reports a race that does not exist (docs/adr/0006).
      await withCheckedContinuation { caller in
        echo.caller = caller
        if !loop.submit(echo) { caller.resume() }
      }
    } onCancel: {
      echo.isCancelled.store(true, ordering: .relaxed)
      _ = loop.submit(EchoCancellation(echo))
    }
    _ = echo.isAnswered.load(ordering: .acquiring)
    return echo.outcome
  }

  /// The most packets that the loop reads for one echo request in a turn.
  private static let mostAtOnce = 64

  /// The failure of an echo request whose task was cancelled or whose loop has stopped.
  private static let ended = LegError(
    LegFailure(.other, "the echo request was given up"), isInconclusive: true)

  /// Opens the socket and sends the request.
  package func run() {
    hasArrived = true
    if isCancelled.load(ordering: .relaxed) { return cancel() }
    do throws(LegError) {
      let socket = try EchoSocket(to: address)
      self.socket = socket
      loop.watch(socket.descriptor, for: .read, self)
      sent = loop.now()
      loop.schedule(self, at: sent + limit)
      try socket.send(message)
    } catch {
      end(.failure(error))
    }
  }

  /// Reads packets until one of them is the reply.
  package func ready(_ descriptor: Int32, for readiness: Readiness) {
    guard let socket, !isOver else { return }
    let now = loop.now()
    do throws(LegError) {
      // Further packets wait for the next turn, so that other work of the loop gets its time.
      for _ in 0..<Self.mostAtOnce {
        guard let bytes = try socket.receive(for: message) else { break }
        let identifier = socket.identifier ?? message.identifier
        if message.isAnswered(by: bytes, identifier: identifier, from: address, to: socket.local) {
          return end(.success(now - sent))
        }
      }
    } catch {
      end(.failure(error))
    }
  }

  /// Ends the wait, because the time limit has passed without a reply.
  package override func fire() {
    let time = "\(limit.nanoseconds / 1_000_000) ms"
    end(
      .failure(LegError(LegFailure(.connectTimeout, "\(address) did not answer an echo request in \(time)"))))
  }

  /// Ends the wait, because the caller's task was cancelled.
  fileprivate func cancel() { if hasArrived { end(.failure(Self.ended)) } }

  /// Closes the socket, stores the outcome and resumes the caller. Only the first call has an effect.
  private func end(_ outcome: Outcome) {
    guard !isOver else { return }
    isOver = true
    loop.cancel(self)
    if let socket = socket.take() {
      loop.unwatch(socket.descriptor, of: self)
      socket.close()
    }
    self.outcome = outcome
    isAnswered.store(true, ordering: .releasing)
    caller.take()?.resume()
  }
}

/// Runs on the loop and ends the echo request of a cancelled task.
private final class EchoCancellation: LoopWork {
  private let echo: Echo

  init(_ echo: Echo) { self.echo = echo }

  func run() { echo.cancel() }
}
