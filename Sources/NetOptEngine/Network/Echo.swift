import CNetwork
import Glibc
package import NetOptCore
import Synchronization

/// One echo request of ICMP on the event loop: a ping. As a timer it is its own limit.
///
/// The socket is a datagram socket for ICMP where `net.ipv4.ping_group_range` lets this process have one (icmp(7)),
/// else a raw one, which wants CAP_NET_RAW. It is connected, so that the kernel gives it packets of that address alone,
/// and the errors that come back; of those a raw socket sees other programs' as well, and passes them over.
///
/// Unchecked sendable: made by the caller, then confined to the loop.
package final class Echo: LoopTimer, LoopWork, ReadinessHandler, @unchecked Sendable {
  package typealias Outcome = Result<Duration, LegError>

  private let address: IPAddress
  private let limit: Duration
  private let loop: EventLoop
  private let message: EchoMessage
  private let isCancelled = Atomic(false)
  private var caller: CheckedContinuation<Void, Never>?
  /// Written by the loop before it resumes the caller.
  private var outcome = Outcome.failure(Echo.ended)
  /// Orders `outcome` before the caller's use of it (docs/adr/0006).
  private let isAnswered = Atomic(false)
  private var socket: EchoSocket?
  private var sent = MonotonicInstant(nanoseconds: 0)
  private var hasArrived = false
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
  /// - Returns: the round trip; or why there was no reply. A `LegError` for a task that was cancelled says so.
  package static func roundTrip(
    to address: IPAddress, within limit: Duration, on loop: EventLoop
  ) async -> Outcome {
    let echo = Echo(address, within: limit, on: loop)
    await withTaskCancellationHandler {
      // Checked: the loop may resume it before this task is suspended (docs/adr/0006).
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

  /// The most packets that are taken in one turn.
  private static let mostAtOnce = 64

  private static let ended = LegError(
    LegFailure(.other, "the echo request was given up"), isCancellation: true)

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

  package func ready(_ descriptor: Int32, for readiness: Readiness) {
    guard let socket, !isOver else { return }
    let now = loop.now()
    do throws(LegError) {
      // More than that waits for the next turn: others want the loop too.
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

  package override func fire() {
    let time = "\(limit.nanoseconds / 1_000_000) ms"
    end(
      .failure(LegError(LegFailure(.connectTimeout, "\(address) did not answer an echo request in \(time)"))))
  }

  fileprivate func cancel() { if hasArrived { end(.failure(Self.ended)) } }

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

/// The end of an echo request whose task was cancelled.
private final class EchoCancellation: LoopWork {
  private let echo: Echo

  init(_ echo: Echo) { self.echo = echo }

  func run() { echo.cancel() }
}
