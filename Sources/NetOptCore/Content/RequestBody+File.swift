/// Bodies from files.
extension RequestBody {
  /// The content of a regular file. The client reads the file chunk by chunk while it sends the body. It can
  /// send the body again: after a lost connection, for a redirect, and it can sign it.
  ///
  /// The request sends the version of the file that exists when the body is made. If the file changes before
  /// the request has ended, the request fails with `unreadableFile`, and the server does not receive the body
  /// in full. A change that leaves the size and the time of the last modification as they are is not noticed;
  /// the kernel may give two changes within some milliseconds the same time.
  ///
  /// ```swift
  /// let request = try NetOptRequest(
  ///   .put, "https://store.example.com/log", body: .file("/var/log/app.log", contentType: "text/plain"))
  /// ```
  ///
  /// - Parameters:
  ///   - path: the path of the file.
  ///   - contentType: the media type; `nil` to send no `Content-Type`. Default: `nil`.
  /// - Throws: `unreadableFile` if the file cannot be opened, or is not a regular file. For a pipe use
  ///   `stream`. A file whose size the system does not know, as in /proc, fails when it is sent.
  public static func file(_ path: String, contentType: String? = nil) throws(NetOptError) -> RequestBody {
    let content = try FileContent(path)
    return RequestBody(
      source: .stream(length: content.size, isRepeatable: true) { _ in
        ErasedIterator(content.makeIterator())
      },
      contentType: contentType)
  }
}
