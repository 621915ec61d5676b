import Glibc
import NetOptLocking
import Synchronization

extension NetOptResponse {
  /// Reads the body into a file. The file appears with its whole content, or not at all: the client writes to
  /// a temporary file in the same folder, writes that to the disk (fsync(2)), and renames it. When the body
  /// fails or the task is cancelled, the temporary file is deleted, and an existing file stays as it was.
  ///
  /// ```swift
  /// try await client.execute(request).save(to: "/var/cache/app/list.json") { done, total in
  ///   print(done, total ?? 0)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - path: the path of the file. An existing file keeps its permissions. If the path is a symbolic link,
  ///     the file behind the link is replaced. A path of a directory, a device or a pipe is an
  ///     error.
  ///   - progress: called after each piece with the number of bytes written so far and the number of bytes of
  ///     the whole body, which is `nil` if the server has not announced it or the body was compressed.
  /// - Returns: the number of bytes of the file.
  /// - Throws: `unexpectedStatus` if the status is not 2xx, before anything is written; `unwritableFile`; the
  ///   errors of the body.
  @discardableResult
  public func save(
    to path: String, progress: ((_ done: Int64, _ total: Int64?) -> Void)? = nil
  ) async throws(NetOptError) -> Int64 {
    try await requireSuccess()
    let total =
      headers.contains(name: "Content-Encoding") ? nil : headers["Content-Length"].flatMap { Int64($0) }
    let file = SavedBody(path)
    try await file.begin()
    do throws(NetOptError) {
      var done: Int64 = 0
      var chunks = body.makeAsyncIterator()
      while let chunk = try await chunks.next() {
        try await file.write(chunk)
        done += Int64(chunk.count)
        progress?(done, total)
      }
      try await file.commit()
      return done
    } catch {
      await file.discard()
      throw error
    }
  }
}

/// The file of `NetOptResponse.save`.
private final class SavedBody: Sendable {
  private let path: String
  /// Writes the file. A disk that hangs would block a thread of Swift's pool, which has only one for each
  /// core.
  private let thread = DiskThread()
  /// `nil` before `begin`, and after `commit` and `discard`.
  private let draft = Mutex<FileDraft?>(nil)

  init(_ path: String) { self.path = path }

  deinit { thread.abandon() }

  func begin() async throws(NetOptError) {
    // The system would end the path at a NUL, and replace another file.
    if path.utf8.contains(0) { throw FileBytes.failure(.unwritableFile, path, "the file", .receive, EINVAL) }
    try await perform { (path, draft) throws(FileDraft.Failure) in
      var status = stat()
      // A rename would replace a device or a pipe by a file.
      if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
        throw FileDraft.Failure(code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
      }
      draft = try FileDraft(of: path, mode: 0o666)
    }
  }

  func write(_ bytes: [UInt8]) async throws(NetOptError) {
    try await perform { (_, draft) throws(FileDraft.Failure) in try draft?.write(bytes) }
  }

  func commit() async throws(NetOptError) {
    try await perform { (_, draft) throws(FileDraft.Failure) in try draft.take()?.commit() }
  }

  /// Deletes what was written. Returns when it is deleted.
  func discard() async { try? await perform { (_, draft) throws(FileDraft.Failure) in draft = nil } }

  /// Runs a step on the thread.
  ///
  /// - Throws: `unwritableFile` when the step fails.
  private func perform(
    _ step: @escaping @Sendable (_ path: String, inout FileDraft?) throws(FileDraft.Failure) -> Void
  ) async throws(NetOptError) {
    let code = await thread.run { () -> Int32? in
      do throws(FileDraft.Failure) {
        try self.draft.withLock { (draft) throws(FileDraft.Failure) in try step(self.path, &draft) }
        return nil
      } catch {
        return error.code
      }
    }
    // Without a result, the system had no thread.
    if let code = code ?? EAGAIN {
      throw FileBytes.failure(.unwritableFile, path, "the file", .receive, code)
    }
  }
}
