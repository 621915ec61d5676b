import COpenSSL
import Glibc
import NetOptCore

/// Reads from the socket for TLS, and lets libcurl read only as much as a `RecordBudget` allows. Beyond that,
/// the reader reports that nothing has arrived yet, and libcurl waits as if this were so. The socket stays
/// readable, so the loop reports the socket again in the next turn.
///
/// The reader is a filter BIO (BIO_push(3), BIO_meth_new(3)) in front of libcurl's own BIO. OpenSSL calls the
/// reader for each read, and frees it with the connection. Confined to the loop's thread.
///
/// The reader also knows where on the socket each record began. So it can tell whether a record had arrived
/// before a request was sent.
final class RecordReader {
  /// How much libcurl may read in this turn. The budget also knows the position of each record on the socket.
  var budget = RecordBudget()
  /// The TLS connection that reads through this reader and owns it.
  private let ssl: OpaquePointer
  /// The reader of the TLS connection to the proxy, if this reader's connection runs inside that connection;
  /// otherwise `nil`. `read` finds it during the handshake, which cannot end without a read of the outer
  /// connection. The search ends when the handshake is over or a request is sent.
  private(set) var outer: RecordReader?
  /// Whether `read` still searches for `outer`.
  private var looksForOuter = true
  /// Whether `budget` limits the reader while the connection has streams. Set at the gate, if the connection
  /// negotiated HTTP/2.
  var isActive = false

  /// Whether the reader has ever refused a read: it reported that nothing had arrived, although data may have
  /// arrived.
  private(set) var hasRefused = false
  /// The cost of the reads since the reader last refused a read, in bytes (`RecordBudget.leastCost`). It
  /// limits the reader while the budget does not.
  private var unbudgeted = 0

  private init(_ ssl: OpaquePointer) { self.ssl = ssl }

  /// Whether bytes were read from the socket that libcurl has not taken, on this connection or on the
  /// connection to the proxy around it.
  var hasBufferedData: Bool {
    // OpenSSL does not count the header of a record.
    budget.isInRecord || RecordReader.Functions.loaded?.pointee.hasPending(ssl) == 1
      || outer?.hasBufferedData == true
  }

  /// Whether a handshake is in progress, on this connection or on the connection to the proxy around it.
  /// Nothing can be sent until the handshake ends.
  var isInHandshake: Bool {
    RecordReader.Functions.loaded?.pointee.isInHandshake(ssl) == 1 || outer?.isInHandshake == true
  }

  /// Whether TLS has failed, on this connection or on the connection to the proxy around it: OpenSSL reads and
  /// writes nothing more. If the last system call on the socket had found no room or no data, libcurl takes each
  /// further failure for a wait (`io_result` in lib/vtls/openssl.c), and never ends the transfers. Ask only while
  /// the connection is in `CallbackState.live`: libcurl frees OpenSSL's connection when it closes the socket.
  var hasFailed: Bool {
    guard let functions = RecordReader.Functions.loaded?.pointee else { return false }
    // OpenSSL says of a failed connection that it is in a handshake. So a working connection takes one call.
    if functions.isInHandshake(ssl) == 1, strcmp(functions.state(ssl), "SSLERR") == 0 { return true }
    return outer?.hasFailed == true
  }

  /// Returns the number of bytes that have arrived on the socket since it was opened. Ends the search for
  /// `outer`.
  ///
  /// - Parameter unread: the number of bytes that have arrived on the socket and were not read.
  func received(_ unread: Int) -> Int {
    endSearch()
    return lowest.budget.position + unread
  }

  /// Ends the search for `outer`, because the handshake is over. If `outer` was not found by then, there is
  /// none.
  func endSearch() { looksForOuter = false }

  /// The reader that reads from the socket: the proxy's if there is one, else this reader.
  var lowest: RecordReader { outer?.lowest ?? self }

  /// Reads for OpenSSL from the next BIO if the reader may read. The result is that of BIO_read(3).
  private func read(
    _ bio: OpaquePointer, into buffer: UnsafeMutableRawPointer, _ count: Int32,
    _ functions: borrowing Functions
  ) -> Int32 {
    functions.clearFlags(bio, netopt_bio_retry_flags)
    guard let next = functions.next(bio) else { return -1 }
    // Only the reader on the socket refuses reads. Bytes that the connection to the proxy has decrypted do
    // not make the socket readable, so nothing would trigger another read after a refusal.
    guard outer != nil || mayRead else { return refuse(bio, functions) }
    // The thread's value is the reader that is reading and still searches for its outer reader. If this
    // reader is called meanwhile, this reader is the outer one. The value is set only during a read, while
    // the BIO keeps the searching reader alive.
    let above = pthread_getspecific(Self.readingKey)
    if let above {
      let inner = Unmanaged<RecordReader>.fromOpaque(above).takeUnretainedValue()
      if inner !== self { inner.outer = self }
    }
    if looksForOuter { pthread_setspecific(Self.readingKey, Unmanaged.passUnretained(self).toOpaque()) }
    let result = functions.read(next, buffer, count)
    if looksForOuter { pthread_setspecific(Self.readingKey, above) }
    functions.copyRetry(bio)
    if result > 0 {
      budget.read(
        UnsafeRawBufferPointer(start: buffer, count: Int(result)), in: outer?.budget.recordStart)
      unbudgeted += max(Int(result), RecordBudget.leastCost)
    }
    return result
  }

  /// Whether the reader may read more. OpenSSL reads on as long as it gets messages without data, such as
  /// session tickets. So the reader also interrupts OpenSSL while the budget does not limit it.
  private var mayRead: Bool {
    isActive && budget.streams > 0 ? budget.mayRead : unbudgeted < RecordBudget.limit
  }

  /// Adds the cost of a TLS state change after the handshake, for example for a session ticket. One record
  /// can contain hundreds of tickets. The reader on the socket bears the cost, because only that reader
  /// refuses reads.
  func chargeStateChange() {
    let lowest = lowest
    lowest.budget.chargeStateChange()
    lowest.unbudgeted += RecordBudget.stateChangeCost
  }

  /// Refuses a read: reports to OpenSSL that there are no bytes on the socket at present.
  private func refuse(_ bio: OpaquePointer, _ functions: borrowing Functions) -> Int32 {
    hasRefused = true
    unbudgeted = 0
    // BIO_set_retry_read(3) is a macro for this.
    functions.setFlags(bio, netopt_bio_read | netopt_bio_should_retry)
    return -1
  }

  /// The key of a value of the thread (pthread_getspecific(3)): the reader that is reading and still searches
  /// for its `outer`. Each loop has its own thread.
  private static let readingKey: pthread_key_t = {
    var key = pthread_key_t()
    precondition(pthread_key_create(&key, nil) == 0, "the process has no key left for a thread's values")
    return key
  }()

  // MARK: OpenSSL

  /// Puts a reader in front of the BIO that a connection reads from. Called at the beginning of the
  /// connection's handshake, before anything was read.
  static func attach(to ssl: OpaquePointer) {
    guard let functions = Functions.loaded?.pointee, let below = functions.readBIO(ssl) else { return }
    guard let bio = make(for: ssl, over: below)?.bio else { return }
    _ = functions.retain(below)
    functions.setReadBIO(ssl, bio)
  }

  /// Makes a reader with its BIO.
  ///
  /// - Parameters:
  ///   - ssl: the TLS connection that reads through the reader.
  ///   - below: the BIO that the reader reads from. When OpenSSL frees the new BIO, it also releases one
  ///     reference to `below`.
  static func make(
    for ssl: OpaquePointer, over below: OpaquePointer
  ) -> (bio: OpaquePointer, reader: RecordReader)? {
    guard let functions = Functions.loaded?.pointee, let bio = functions.new(functions.method) else {
      return nil
    }
    let reader = RecordReader(ssl)
    // From here on OpenSSL owns the reader, which is released with the BIO.
    functions.setData(bio, Unmanaged.passRetained(reader).toOpaque())
    functions.setReady(bio, 1)
    _ = functions.push(bio, below)
    return (bio, reader)
  }

  /// Returns the reader of a connection, if it has one.
  static func of(_ ssl: OpaquePointer) -> RecordReader? {
    guard let functions = Functions.loaded?.pointee, let bio = functions.readBIO(ssl),
      functions.type(bio) == functions.index, let data = functions.data(bio)
    else { return nil }
    return Unmanaged<RecordReader>.fromOpaque(data).takeUnretainedValue()
  }

  /// OpenSSL's functions. Their types are those of the man pages, and nothing checks the types:
  /// BIO_meth_new(3), BIO_new(3), BIO_get_data(3), BIO_set_flags(3), BIO_read(3), BIO_ctrl(3), BIO_push(3),
  /// SSL_set0_rbio(3), SSL_has_pending(3), SSL_in_init(3), SSL_state_string(3). `init` shows which function
  /// each property is.
  ///
  /// Unchecked: `method` is complete when it is stored, and nothing changes it.
  private struct Functions: @unchecked Sendable {
    typealias BIO = OpaquePointer
    /// A kind of BIO, an OpenSSL `BIO_METHOD`: the callbacks below belong to it (BIO_meth_new(3)).
    typealias Method = OpaquePointer
    typealias Read = @convention(c) (BIO?, UnsafeMutableRawPointer?, Int32) -> Int32
    typealias Control = @convention(c) (BIO?, Int32, Int, UnsafeMutableRawPointer?) -> Int
    typealias Destroy = @convention(c) (BIO?) -> Int32

    let new: @convention(c) (Method) -> BIO?
    let next: @convention(c) (BIO) -> BIO?
    let push: @convention(c) (BIO, BIO) -> BIO?
    let retain: @convention(c) (BIO) -> Int32
    let type: @convention(c) (BIO) -> Int32
    let setData: @convention(c) (BIO, UnsafeMutableRawPointer?) -> Void
    let data: @convention(c) (BIO) -> UnsafeMutableRawPointer?
    let setReady: @convention(c) (BIO, Int32) -> Void
    let setFlags: @convention(c) (BIO, Int32) -> Void
    let clearFlags: @convention(c) (BIO, Int32) -> Void
    let copyRetry: @convention(c) (BIO) -> Void
    let read: @convention(c) (BIO, UnsafeMutableRawPointer, Int32) -> Int32
    let control: @convention(c) (BIO, Int32, Int, UnsafeMutableRawPointer?) -> Int
    let hasPending: @convention(c) (OpaquePointer) -> Int32
    let isInHandshake: @convention(c) (OpaquePointer) -> Int32
    /// Returns a short name of the state of a connection.
    let state: @convention(c) (OpaquePointer) -> UnsafePointer<CChar>
    let readBIO: @convention(c) (OpaquePointer) -> BIO?
    let setReadBIO: @convention(c) (OpaquePointer, BIO) -> Void
    /// The method that makes BIOs of this kind. It lives as long as the process.
    let method: Method
    /// The type number of the BIOs that `method` makes.
    let index: Int32

    /// The functions, stored behind a pointer; `nil` without `OpenSSL.loaded`, or if `init` throws. Each read
    /// uses the functions, and a copy of all functions would cost as much as the rest of the read. Never
    /// freed.
    ///
    /// Unsafe: nothing writes to the memory after it was initialised.
    nonisolated(unsafe) static let loaded: UnsafePointer<Functions>? = {
      guard OpenSSL.loaded != nil, let functions = try? Functions() else { return nil }
      let pointer = UnsafeMutablePointer<Functions>.allocate(capacity: 1)
      pointer.initialize(to: functions)
      return UnsafePointer(pointer)
    }()

    private init() throws(OpenSSL.MissingFunction) {
      new = try OpenSSL.function("BIO_new")
      next = try OpenSSL.function("BIO_next")
      push = try OpenSSL.function("BIO_push")
      retain = try OpenSSL.function("BIO_up_ref")
      type = try OpenSSL.function("BIO_method_type")
      setData = try OpenSSL.function("BIO_set_data")
      data = try OpenSSL.function("BIO_get_data")
      setReady = try OpenSSL.function("BIO_set_init")
      setFlags = try OpenSSL.function("BIO_set_flags")
      clearFlags = try OpenSSL.function("BIO_clear_flags")
      copyRetry = try OpenSSL.function("BIO_copy_next_retry")
      read = try OpenSSL.function("BIO_read")
      control = try OpenSSL.function("BIO_ctrl")
      hasPending = try OpenSSL.function("SSL_has_pending")
      isInHandshake = try OpenSSL.function("SSL_in_init")
      state = try OpenSSL.function("SSL_state_string")
      readBIO = try OpenSSL.function("SSL_get_rbio")
      setReadBIO = try OpenSSL.function("SSL_set0_rbio")
      let newIndex: @convention(c) () -> Int32 = try OpenSSL.function("BIO_get_new_index")
      let newMethod: @convention(c) (Int32, UnsafePointer<CChar>) -> Method? = try OpenSSL.function(
        "BIO_meth_new")
      let setRead: @convention(c) (Method, Read) -> Int32 = try OpenSSL.function("BIO_meth_set_read")
      let setControl: @convention(c) (Method, Control) -> Int32 = try OpenSSL.function("BIO_meth_set_ctrl")
      let setDestroy: @convention(c) (Method, Destroy) -> Int32 = try OpenSSL.function("BIO_meth_set_destroy")
      index = newIndex() | netopt_bio_type_filter
      guard index > 0, let method = newMethod(index, "records") else { throw OpenSSL.MissingFunction() }
      _ = setRead(method, readCallback)
      _ = setControl(method, controlCallback)
      _ = setDestroy(method, destroyCallback)
      self.method = method
    }
  }

  /// Reads through a reader's BIO (BIO_meth_set_read(3)).
  private static let readCallback: Functions.Read = { bio, buffer, count in
    guard let functions = Functions.loaded, let bio, let buffer, let data = functions.pointee.data(bio) else {
      return -1
    }
    // The BIO keeps the reader alive during the read.
    return Unmanaged<RecordReader>.fromOpaque(data)._withUnsafeGuaranteedRef {
      $0.read(bio, into: buffer, count, functions.pointee)
    }
  }

  /// Passes a command for a reader's BIO (BIO_ctrl(3)) on to the BIO behind it, except for a few commands.
  private static let controlCallback: Functions.Control = { bio, command, number, pointer in
    // Push and pop concern only the reader's BIO. For each record, OpenSSL asks twice whether the kernel
    // decrypts it. The answer is always 0: with a filter BIO, the kernel does not decrypt.
    guard command != netopt_bio_push, command != netopt_bio_pop, command != netopt_bio_get_ktls_receive,
      let functions = Functions.loaded, let bio,
      let next = functions.pointee.next(bio)
    else { return 0 }
    return functions.pointee.control(next, command, number, pointer)
  }

  /// Releases the reader of a BIO that OpenSSL frees (BIO_meth_set_destroy(3)).
  private static let destroyCallback: Functions.Destroy = { bio in
    if let functions = Functions.loaded, let bio, let data = functions.pointee.data(bio) {
      Unmanaged<RecordReader>.fromOpaque(data).release()
    }
    return 1
  }
}
