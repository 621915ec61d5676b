import Glibc
import NetOptLocking

/// The content of a regular file, for reading it several times. A reader notices when the file was changed or
/// replaced since the value was made, so all readers together read one version of the file. Reads only while
/// a reader exists; the value itself has no descriptor.
package struct FileContent: Sendable {
  /// The attributes from stat(2) that tell one version of a file from another. The time of the last change of
  /// the inode (ctime) is not among them: renaming a file does not change its content.
  private struct Version: Equatable, Sendable {
    let device: dev_t
    let inode: ino_t
    let size: off_t
    let seconds: Int
    let nanoseconds: Int

    init(_ status: stat) {
      (device, inode, size) = (status.st_dev, status.st_ino, status.st_size)
      (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
  }

  /// The maximum number of bytes of a chunk.
  package static let chunkSize = 128 << 10

  /// The path of the file.
  private let path: String
  private let version: Version

  /// The size of the file in bytes.
  package var size: Int64 { Int64(version.size) }

  /// Takes down the present version of a file. Does not read the content.
  ///
  /// - Throws: `unreadableFile` if the file cannot be opened for reading, or is not a regular file.
  package init(_ path: String) throws(NetOptError) {
    self.path = path
    let (descriptor, status) = try Self.open(path)
    close(descriptor)
    version = Version(status)
  }

  /// Opens a regular file for reading.
  private static func open(_ path: String) throws(NetOptError) -> (descriptor: Int32, stat) {
    // The system would end the path at a NUL, and open another file.
    guard !path.utf8.contains(0) else { throw failure(path, ENOENT) }
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(path, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw NetOptError(
        .unreadableFile, phase: .send,
        "the body \(FileBytes.shown(path)) is not a regular file; read it and send its bytes, or a stream")
    }
    return (descriptor, status)
  }

  private static func failure(_ path: String, _ code: Int32) -> NetOptError {
    FileBytes.failure(.unreadableFile, path, "the body", .send, code)
  }

  /// Returns an iterator over the chunks of the file, from its beginning on. The iterator opens the file with
  /// the first chunk. It throws `unreadableFile` if the file cannot be read or is no longer the same version,
  /// also when the file changes while it is read.
  package func makeIterator() -> Iterator { Iterator(self) }

  /// Reads the file chunk by chunk.
  package struct Iterator: AsyncIteratorProtocol {
    private let reader: Reader

    fileprivate init(_ content: FileContent) { reader = Reader(content) }

    package mutating func next() async throws(NetOptError) -> [UInt8]? { try await reader.next() }

    package mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(NetOptError) -> [UInt8]? { try await reader.next() }
  }

  /// An open file with a thread that reads it. A disk or a network file system that hangs would block a
  /// thread of Swift's pool, which has only one for each core.
  private final class Reader: Sendable {
    private struct State {
      /// The descriptor; -1 before the first chunk.
      var descriptor: Int32 = -1
      /// The number of bytes that were read.
      var offset: Int64 = 0
    }

    private let content: FileContent
    private let thread = DiskThread()
    /// Only one chunk is read at a time.
    private let state = Locked(State())

    init(_ content: FileContent) { self.content = content }

    deinit {
      // Does not wait for a read that hangs: such a read keeps this object, so none is running.
      thread.abandon()
      let descriptor = state.withLock { $0.descriptor }
      if descriptor >= 0 { close(descriptor) }
    }

    /// Returns the next chunk; `nil` at the end.
    func next() async throws(NetOptError) -> [UInt8]? {
      let chunk = await thread.run { Result { () throws(NetOptError) in try self.read() } }
      guard let chunk else {
        throw NetOptError(.libraryFailed, phase: .send, "the system has no thread to read the body with")
      }
      return try chunk.get()
    }

    private func read() throws(NetOptError) -> [UInt8]? {
      var (descriptor, offset) = state.withLock { ($0.descriptor, $0.offset) }
      if descriptor < 0 {
        let (opened, status) = try FileContent.open(content.path)
        descriptor = opened
        // From here on `deinit` closes it.
        state.withLock { $0.descriptor = opened }
        guard Version(status) == content.version else { throw content.changed }
      }
      let chunk = try content.chunk(of: descriptor, at: offset)
      offset += Int64(chunk.count)
      state.withLock { [offset] in $0.offset = offset }
      return chunk.isEmpty ? nil : chunk
    }
  }

  /// Reads the chunk at an offset; empty at the end of the file.
  private func chunk(of descriptor: Int32, at offset: Int64) throws(NetOptError) -> [UInt8] {
    let room = Int(min(Int64(Self.chunkSize), size - offset))
    var filled = 0
    var code: Int32 = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      while filled < room {
        let rest = UnsafeMutableBufferPointer(rebasing: buffer[filled..<room])
        let taken = pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(filled))
        if taken < 0, errno == EINTR { continue }
        if taken < 0 { code = errno }
        guard taken > 0 else { break }
        filled += taken
      }
      count = filled
    }
    guard code == 0 else { throw Self.failure(path, code) }
    // The last chunk proves that all chunks come from the same version.
    if offset + Int64(filled) == size || filled < room {
      var status = stat()
      guard fstat(descriptor, &status) == 0, Version(status) == version else { throw changed }
      var byte: UInt8 = 0
      guard filled == room, pread(descriptor, &byte, 1, off_t(size)) == 0 else {
        throw NetOptError(
          .unreadableFile, phase: .send,
          "the body \(FileBytes.shown(path)) has another length than the system says, as files in /proc have; read it and send its bytes"
        )
      }
    }
    return chunk
  }

  private var changed: NetOptError {
    NetOptError(
      .unreadableFile, phase: .send,
      "the body \(FileBytes.shown(path)) has changed since the request was made; make the request again")
  }
}
