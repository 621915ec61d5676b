import NetOptCore
import NetOptLocking

/// The answer when libcurl asks for more of a request's body.
enum UploadStep {
  /// This many bytes were written to libcurl's buffer. 0 means the end of the body.
  case bytes(Int)
  /// No bytes are available yet.
  case notYet
  /// The body failed.
  case failed
}

/// Carries a streamed request body from the caller's sequence to libcurl. A task (`pump`) pulls chunks from
/// the sequence, and waits while libcurl has `highWater` bytes or more to take. Safe to use from any thread.
///
/// The stream keeps the beginning of the body, so that a request that the server did not process can be sent
/// again. When libcurl has taken more than the beginning, a repeatable body is read again from its sequence.
final class UploadStream: Sendable {
  /// The task in `pump` waits while libcurl has this many bytes or more to take.
  static let highWater = 256 * 1024
  /// The maximum number of bytes at the beginning of the body that are kept for sending them again. This
  /// covers the bytes that an HTTP/2 client may send before the server first answers (65,535 bytes; RFC 9113,
  /// section 6.9.2), and libcurl's send buffer.
  static let mostKept = 128 * 1024

  private struct State {
    /// The chunks that libcurl has not taken whole.
    var chunks: [[UInt8]] = []
    /// The number of bytes of the first chunk that libcurl has taken.
    var offset = 0
    /// The chunks that libcurl has taken whole, from the beginning of the body on. Empty once libcurl has
    /// taken more than `mostKept` bytes.
    var kept: [[UInt8]] = []
    /// The number of bytes that libcurl has taken since the beginning of the body. `rewind` sets it to 0.
    var taken = 0
    /// The number of bytes that libcurl has not taken.
    var waiting = 0
    /// How often `rewind` has made `pump` read the sequence again.
    var restarts = 0
    /// Whether the sequence has ended, or the body has failed.
    var hasEnded = false
    /// Why the body failed; `nil` if it did not.
    var failure: NetOptError?
    /// Whether libcurl found no bytes and paused, so that `pump` must wake it.
    var isStarved = false
    /// The task in `pump`, while it waits: until libcurl takes bytes, or until the sequence is to be read
    /// again.
    var producer: UnsafeContinuation<Void, Never>?
  }

  private let state = Locked(State())
  /// The length of the body in bytes that the request announces; `nil` if it announces none.
  private let length: Int64?
  /// Whether `makeIterator` may be called more than once.
  private let isRepeatable: Bool
  /// Makes an iterator over the chunks of the caller's sequence.
  private let makeIterator: RequestBody.MakeChunks

  init(
    length: Int64?, isRepeatable: Bool, _ makeIterator: @escaping RequestBody.MakeChunks
  ) {
    self.length = length
    self.isRepeatable = isRepeatable
    self.makeIterator = makeIterator
  }

  /// Whether the sequence must be read to its end before the request is sent. True for an announced length of
  /// 0: the server takes the request for complete after its head, so netopt must check first that the
  /// sequence has no bytes.
  var endsFirst: Bool { length == 0 && !state.withLock { $0.hasEnded } }

  /// Why the body failed; `nil` if it did not, or not yet.
  var failure: NetOptError? { state.withLock { $0.failure } }

  /// Copies bytes of the body to libcurl's buffer. Called on the loop's thread.
  func take(_ buffer: UnsafeMutableRawBufferPointer) -> UploadStep {
    let (step, producer) = state.withLock { state -> (UploadStep, UnsafeContinuation<Void, Never>?) in
      if state.failure != nil { return (.failed, nil) }
      var filled = 0
      while filled < buffer.count, let chunk = state.chunks.first {
        let rest = chunk[state.offset...].prefix(buffer.count - filled)
        UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyBytes(from: rest)
        filled += rest.count
        state.offset += rest.count
        if state.offset == chunk.count {
          state.kept.append(state.chunks.removeFirst())
          state.offset = 0
        }
      }
      state.waiting -= filled
      state.taken += filled
      if state.taken > Self.mostKept { state.kept = [] }
      if filled == 0, !state.hasEnded {
        state.isStarved = true
        return (.notYet, nil)
      }
      let hasRoom = state.waiting < Self.highWater && !state.hasEnded
      return (.bytes(filled), hasRoom ? state.producer.take() : nil)
    }
    producer?.resume()
    return step
  }

  /// Whether `rewind` would succeed now.
  var canRewind: Bool { isRepeatable || state.withLock { $0.taken <= Self.mostKept } }

  /// Makes `take` begin at the first byte of the body again. Called on the loop's thread.
  ///
  /// - Returns: false if the beginning of the body was not kept, because libcurl has taken too much, and the
  ///   body is not repeatable.
  func rewind() -> Bool {
    let (isRewound, producer) = state.withLock { state -> (Bool, UnsafeContinuation<Void, Never>?) in
      if state.taken <= Self.mostKept {
        state.chunks.insert(contentsOf: state.kept, at: 0)
        state.waiting += state.taken
        (state.kept, state.taken, state.offset) = ([], 0, 0)
        return (true, nil)
      }
      guard isRepeatable else { return (false, nil) }
      let producer = state.producer.take()
      var fresh = State()
      (fresh.restarts, fresh.failure) = (state.restarts + 1, state.failure)
      fresh.hasEnded = state.failure != nil
      state = fresh
      return (true, producer)
    }
    producer?.resume()
    return isRewound
  }

  /// Reads the sequence, and reads a repeatable sequence again when `rewind` requires it. Does nothing if an
  /// earlier call has read the sequence.
  ///
  /// For a repeatable sequence, the function returns only when the task is cancelled, unless the announced
  /// length is 0. For any other sequence, it returns after one pass.
  ///
  /// - Parameter wake: called when libcurl waits for bytes and more bytes have arrived, and at the end.
  func pump(_ wake: @Sendable () -> Void) async {
    if state.withLock({ $0.hasEnded }) { return }
    // If the announced length is 0, libcurl takes no bytes, so `rewind` never requires a second pass.
    let isRepeatable = isRepeatable && length != 0
    var restarts: Int
    repeat {
      restarts = state.withLock { $0.restarts }
      await readAll(restarts, wake)
      guard isRepeatable else { return }
      await pause { [restarts] state in state.restarts == restarts }
    } while !Task.isCancelled
  }

  /// Pulls all chunks of the sequence.
  ///
  /// A server takes the body for complete at the last announced byte. So the chunk with this byte is sent
  /// only after the sequence has ended. If the sequence has more bytes than announced, the request fails
  /// before the server can take the body for complete.
  ///
  /// - Parameters:
  ///   - restarts: the restarts of the body so far. When the body begins again meanwhile, this pass ends and
  ///     adds nothing more.
  ///   - wake: called when libcurl waits for bytes and more bytes have arrived, and at the end.
  private func readAll(_ restarts: Int, _ wake: @Sendable () -> Void) async {
    var iterator = makeIterator(.sending)
    var total: Int64 = 0
    var last: [UInt8] = []
    do {
      while let chunk = try await iterator.next(), !Task.isCancelled {
        if state.withLock({ $0.restarts != restarts }) { return }
        total += Int64(chunk.count)
        if let length, total > length { break }
        if chunk.isEmpty { continue }
        if total == length {
          last = chunk
          continue
        }
        if append(chunk, restarts) { wake() }
        await pause { $0.restarts == restarts && $0.waiting >= Self.highWater }
      }
      if let length, total != length {
        let kind = total > length ? "at least \(total)" : "\(total)"
        end(
          restarts,
          failure: NetOptError(
            .invalidRequest, phase: .send,
            "the body's stream has \(kind) bytes, but the request announced \(length)"))
      } else {
        if !last.isEmpty { _ = append(last, restarts) }
        end(restarts, failure: nil)
      }
    } catch let error as NetOptError {
      end(restarts, failure: error.with(cause: error))
    } catch {
      end(
        restarts,
        failure: NetOptError(
          .sendFailed, phase: .send, "the body's stream failed before its end: \(error)"
        ).with(cause: error))
    }
    wake()
  }

  /// Adds a chunk for libcurl, unless the body has begun again since `restarts` was read.
  ///
  /// - Returns: whether libcurl waits for bytes.
  private func append(_ chunk: [UInt8], _ restarts: Int) -> Bool {
    state.withLock { state in
      guard state.restarts == restarts else { return false }
      state.chunks.append(chunk)
      state.waiting += chunk.count
      defer { state.isStarved = false }
      return state.isStarved
    }
  }

  /// Waits while a condition is true, until the task is cancelled.
  private func pause(while isPaused: (borrowing State) -> Bool) async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { (producer: UnsafeContinuation<Void, Never>) in
        let mustWait = state.withLock { state in
          guard isPaused(state), !Task.isCancelled else { return false }
          state.producer = producer
          return true
        }
        if !mustWait { producer.resume() }
      }
    } onCancel: {
      state.withLock { $0.producer.take() }?.resume()
    }
  }

  /// Ends the body, unless it has begun again since `restarts` was read.
  ///
  /// - Parameter failure: why the body failed; `nil` if it is complete.
  private func end(_ restarts: Int, failure: NetOptError?) {
    state.withLock { state in
      guard state.restarts == restarts else { return }
      state.hasEnded = true
      state.failure = failure
      state.isStarved = false
    }
  }
}
