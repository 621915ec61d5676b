import COpenSSL

/// Reads the objects of one kind in a PEM text (RFC 7468), in OpenSSL's form.
enum PEMObjects {
  /// Returns the passphrase of an encrypted object (pem_password_cb(3)).
  typealias Password =
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
  /// Reads the next object of a kind from a BIO (PEM_read_bio_X509_AUX(3)).
  typealias Read =
    @convention(c) (OpaquePointer, UnsafeRawPointer?, Password?, UnsafeMutableRawPointer?) -> OpaquePointer?

  /// Frees an object (X509_free(3)).
  typealias Free = @convention(c) (OpaquePointer) -> Void

  /// Has no passphrase. Without such a callback, OpenSSL would ask for one on the terminal.
  static let noPassword: Password = { _, _, _, _ in -1 }

  /// Returns all objects of a kind, which the caller must free; `nil` if one cannot be read. Blocks of other
  /// kinds are skipped.
  ///
  /// - Parameters:
  ///   - read: OpenSSL's function that reads an object of the kind.
  ///   - free: OpenSSL's function that frees one.
  static func read(_ text: [UInt8], _ read: Read, _ free: Free) -> [OpaquePointer]? {
    withBIO(text) { bio in
      var objects: [OpaquePointer] = []
      while let object = read(bio, nil, noPassword, nil) { objects.append(object) }
      let error = Functions.loaded?.lastError() ?? 0
      if netopt_error_library(error) == netopt_error_library_pem,
        netopt_error_reason(error) == netopt_error_no_start_line
      {
        return objects
      }
      for object in objects { free(object) }
      return nil
    }
  }

  /// Calls a function with a BIO that reads these bytes. `nil` without OpenSSL.
  static func withBIO<Result>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Result?) -> Result? {
    guard let functions = Functions.loaded else { return nil }
    return bytes.withUnsafeBytes { bytes in
      guard let bio = functions.open(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer {
        _ = functions.close(bio)
        functions.clearErrors()
      }
      functions.clearErrors()
      return body(bio)
    }
  }

  /// Calls a function of OpenSSL, and clears the errors that it leaves on this thread.
  static func clearingErrors<Result>(_ body: () -> Result) -> Result {
    defer { Functions.loaded?.clearErrors() }
    return body()
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// BIO_new_mem_buf(3), BIO_free(3), ERR_peek_last_error(3), ERR_clear_error(3). `init` shows which function
  /// each property is.
  private struct Functions: Sendable {
    let open: @convention(c) (UnsafeRawPointer?, Int32) -> OpaquePointer?
    let close: @convention(c) (OpaquePointer) -> Int32
    let lastError: @convention(c) () -> UInt
    let clearErrors: @convention(c) () -> Void

    /// The functions; `nil` without `OpenSSL.loaded`, or if `init` throws.
    static let loaded: Functions? = OpenSSL.loaded == nil ? nil : try? Functions()

    private init() throws(OpenSSL.MissingFunction) {
      open = try OpenSSL.function("BIO_new_mem_buf")
      close = try OpenSSL.function("BIO_free")
      lastError = try OpenSSL.function("ERR_peek_last_error")
      clearErrors = try OpenSSL.function("ERR_clear_error")
    }
  }
}
