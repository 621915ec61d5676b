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
/// again.
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
    /// Whether `pump` is done: the sequence has ended, or the body has failed.
    var hasEnded = false
    /// Why the body failed; `nil` if it did not.
    var failure: NetOptError?
    /// Whether libcurl found no bytes and paused, so that `pump` must wake it.
    var isStarved = false
    /// The task in `pump`, while it waits until libcurl takes bytes.
    var producer: UnsafeContinuation<Void, Never>?
  }

  private let state = Locked(State())
  /// The length of the body in bytes that the request announces; `nil` if it announces none.
  private let length: Int64?
  /// Makes an iterator over the chunks of the caller's sequence.
  private let makeIterator: @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>

  init(
    length: Int64?, _ makeIterator: @escaping @Sendable () -> any AsyncIteratorProtocol<[UInt8], any Error>
  ) {
    self.length = length
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
      return (.bytes(filled), state.waiting < Self.highWater ? state.producer.take() : nil)
    }
    producer?.resume()
    return step
  }

  /// Whether `rewind` would succeed now.
  var canRewind: Bool { state.withLock { $0.taken <= Self.mostKept } }

  /// Makes `take` begin at the first byte of the body again. Called on the loop's thread.
  ///
  /// - Returns: false if the beginning of the body was not kept, because libcurl has taken too much.
  func rewind() -> Bool {
    state.withLock { state in
      guard state.taken <= Self.mostKept else { return false }
      state.chunks.insert(contentsOf: state.kept, at: 0)
      state.waiting += state.taken
      (state.kept, state.taken, state.offset) = ([], 0, 0)
      return true
    }
  }

  /// Pulls all chunks of the sequence. Does nothing if an earlier call has done so.
  ///
  /// A server takes the body for complete at the last announced byte. So the chunk with this byte is sent
  /// only after the sequence has ended. If the sequence has more bytes than announced, the request fails
  /// before the server can take the body for complete.
  ///
  /// - Parameter wake: called when libcurl waits for bytes and more bytes have arrived, and at the end.
  func pump(_ wake: @Sendable () -> Void) async {
    if state.withLock({ $0.hasEnded }) { return }
    var iterator = makeIterator()
    var total: Int64 = 0
    var last: [UInt8] = []
    do {
      while let chunk = try await iterator.next(), !Task.isCancelled {
        total += Int64(chunk.count)
        if let length, total > length { break }
        if chunk.isEmpty { continue }
        if total == length {
          last = chunk
          continue
        }
        if append(chunk) { wake() }
        await makeRoom()
      }
      if let length, total != length {
        let kind = total > length ? "at least \(total)" : "\(total)"
        end(
          failure: NetOptError(
            .invalidRequest, phase: .send,
            "the body's stream has \(kind) bytes, but the request announced \(length)"))
      } else {
        if !last.isEmpty { _ = append(last) }
        end(failure: nil)
      }
    } catch {
      end(
        failure: NetOptError(
          .sendFailed, phase: .send, "the body's stream failed before its end: \(error)"))
    }
    wake()
  }

  /// Adds a chunk for libcurl.
  ///
  /// - Returns: whether libcurl waits for bytes.
  private func append(_ chunk: [UInt8]) -> Bool {
    state.withLock { state in
      state.chunks.append(chunk)
      state.waiting += chunk.count
      defer { state.isStarved = false }
      return state.isStarved
    }
  }

  /// Waits until fewer than `highWater` bytes wait for libcurl, or the task is cancelled.
  private func makeRoom() async {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { (producer: UnsafeContinuation<Void, Never>) in
        let mustWait = state.withLock { state in
          guard state.waiting >= Self.highWater, !Task.isCancelled else { return false }
          state.producer = producer
          return true
        }
        if !mustWait { producer.resume() }
      }
    } onCancel: {
      state.withLock { $0.producer.take() }?.resume()
    }
  }

  /// Ends the body.
  ///
  /// - Parameter failure: why the body failed; `nil` if it is complete.
  private func end(failure: NetOptError?) {
    state.withLock { state in
      state.hasEnded = true
      state.failure = failure
      state.isStarved = false
    }
  }
}
