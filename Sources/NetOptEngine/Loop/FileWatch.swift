import Glibc
package import NetOptCore

/// The attributes from stat(2) that distinguish a file from an earlier file or version at the same path.
package struct FileIdentity: Hashable, Sendable {
  /// The device that holds the file.
  private let device: dev_t
  /// The file's inode.
  private let number: ino_t
  /// The file's size in bytes.
  private let size: off_t
  /// Two times as four numbers: the seconds and nanoseconds of the last change of the contents (mtime), then
  /// the seconds and nanoseconds of the last change of the inode (ctime).
  private let changes: [Int]

  /// Reads the attributes of a file. Follows links. `nil` when the file does not exist.
  package init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = status.st_dev
    number = status.st_ino
    size = status.st_size
    changes = [
      status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
    ]
  }
}

/// Decides when `FileWatch` checks files that the system does not watch. The first check comes after a pause
/// of 1 s. Each further pause is twice as long as the one before, up to 30 s.
struct PollBackoff {
  static let shortest = Duration.seconds(1)
  static let longest = Duration.seconds(30)

  /// The length of the next pause.
  private var pause = shortest
  /// When the next check is due: the moment that `next` returned last; `nil` before the first call.
  private var due: MonotonicInstant?

  /// Returns the moment of the next check. A call before that moment returns the same moment again, so checks
  /// for other reasons do not postpone this check.
  mutating func next(at now: MonotonicInstant) -> MonotonicInstant {
    if let due, due > now { return due }
    let next = now + pause
    pause = min(pause * 2, Self.longest)
    due = next
    return next
  }

  /// Starts again with the shortest pause, after a change.
  mutating func reset() { self = PollBackoff() }
}

/// Reports when files are changed, replaced, removed or created. It uses inotify(7) on the directories of the
/// files.
///
/// A watch on the file itself is lost when another file replaces it, and editors and deployments write by
/// replacing. So this class watches the file's directory and the directory of each link on its path. After
/// any event in these directories it checks whether the files differ from before. A burst of changes counts
/// as one change.
///
/// When a directory does not exist, or the system refuses to watch it or refuses inotify altogether, this
/// class checks the files at intervals: after 1 s at first, then less often, down to every 30 s.
package final class FileWatch: LoopTimer, ReadinessHandler, @unchecked Sendable {
  // Unchecked: after `init`, only the loop's thread touches the watch.

  /// The delay between an event and the check of the files. It is long enough to write a list and its
  /// signature one after the other, and so short that a person does not notice it.
  private static let debounce = Duration.milliseconds(100)
  /// The events that a watch of a directory reports (inotify(7)).
  private static let events = UInt32(
    IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
      | IN_MOVE_SELF)

  private let loop: EventLoop
  /// The paths of the watched files. A file need not exist.
  private let paths: [String]
  /// Called on the loop's thread when a file differs from the last check.
  private let onChange: @Sendable () -> Void
  /// Called at most once, on the loop's thread, when the system refuses to watch.
  private let onFailure: @Sendable (NetOptError) -> Void
  /// Opens the inotify descriptor. Returns -1, and sets errno, when the system refuses it.
  private let open: @Sendable () -> Int32
  /// The identities of the files at the last check, in the order of `paths`. `nil` for a file that did not
  /// exist.
  private var known: [FileIdentity?]
  /// Whether the watch has been started and not stopped.
  private var isRunning = false
  /// The inotify descriptor. -1 while the watch does not run, and when the system refuses a descriptor: their
  /// number for each user is limited (fs.inotify.max_user_instances).
  private var descriptor: Int32 = -1
  /// The watched directories, with inotify's number for each watch.
  private var directories: [String: Int32] = [:]
  /// The times of the checks while the system does not watch a directory.
  private var backoff = PollBackoff()
  /// Whether `onFailure` was called.
  private var hasReportedRefusal = false

  /// Makes a watch that is not yet started.
  ///
  /// - Parameters:
  ///   - paths: the files, which need not exist.
  ///   - known: the last known identities of the files. A file whose identity now differs counts as changed.
  ///   - onChange: called on the loop's thread; must not do long work there.
  ///   - onFailure: called on the loop's thread when the system refuses to watch a directory, or refuses
  ///     inotify altogether. Called at most once.
  ///   - open: opens the inotify descriptor. Default: inotify_init1(2).
  package init(
    _ loop: EventLoop, _ paths: [String], known: [FileIdentity?], onChange: @escaping @Sendable () -> Void,
    onFailure: @escaping @Sendable (NetOptError) -> Void,
    open: @escaping @Sendable () -> Int32 = { inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC)) }
  ) {
    self.loop = loop
    self.paths = paths
    self.known = known
    self.onChange = onChange
    self.onFailure = onFailure
    self.open = open
  }

  /// Starts or stops a watch on the loop.
  private final class Work: LoopWork {
    private let watch: FileWatch
    private let starts: Bool
    init(_ watch: FileWatch, starts: Bool) {
      self.watch = watch
      self.starts = starts
    }
    func run() { if starts { watch.begin() } else { watch.end() } }
  }

  /// Starts watching. Safe from any thread.
  package func start() { _ = loop.submit(Work(self, starts: true)) }

  /// Stops watching. Safe from any thread. Must be called before the loop stops.
  package func stop() { _ = loop.submit(Work(self, starts: false)) }

  private func begin() {
    guard !isRunning else { return }
    isRunning = true
    descriptor = open()
    if descriptor >= 0 {
      loop.watch(descriptor, for: .read, self)
    } else {
      reportRefusal("inotify_init1", errno)
    }
    checkFiles()
  }

  private func end() {
    loop.cancel(self)
    isRunning = false
    guard descriptor >= 0 else { return }
    loop.unwatch(descriptor, of: self)
    close(descriptor)
    descriptor = -1
  }

  /// Handles events in the watched directories.
  package func ready(_ descriptor: Int32, for readiness: Readiness) {
    // The kind of event does not matter, and neither do lost events (IN_Q_OVERFLOW).
    withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
      while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
    }
    // Further events do not postpone the check: in a busy directory the check would never run.
    let next = loop.now() + Self.debounce
    if loop.due(of: self).map({ $0 > next }) ?? true { loop.schedule(self, at: next) }
  }

  /// Checks the files: the delay after an event is over, or a check of files that cannot be watched is due.
  package override func fire() {
    if isRunning { checkFiles() }
  }

  /// Calls `onChange` if a file differs from the last check. Also updates the watched directories.
  private func checkFiles() {
    watchDirectories()
    let present = paths.map { FileIdentity($0) }
    guard present != known else { return }
    known = present
    backoff.reset()
    onChange()
  }

  /// Watches the directories on the paths of the files (`wantedDirectories`). They change when a link is
  /// replaced.
  ///
  /// A link may be replaced after this class has followed it and before its directory is watched. inotify
  /// does not report that change. So this function follows the links again, until they lead to the same
  /// directories twice in a row.
  private func watchDirectories() {
    guard descriptor >= 0 else { return loop.schedule(self, at: backoff.next(at: loop.now())) }
    var wanted = wantedDirectories
    for _ in 0..<Self.mostTries {
      watch(wanted)
      let now = wantedDirectories
      if now == wanted { return }
      wanted = now
    }
    // Another process keeps replacing links. Try again later.
    loop.schedule(self, at: loop.now() + Self.debounce)
  }

  /// How many times `watchDirectories` follows the links before it gives up for now.
  private static let mostTries = 8

  /// The directories to watch. For each path: its directory, the directory of each link on the path, and the
  /// directory that contains the file in the end.
  private var wantedDirectories: Set<String> {
    Set(paths.flatMap { [FileBytes.folder(of: $0)] + Self.directories(of: $0) })
  }

  /// Watches directories, and stops watching all others. If a directory cannot be watched, schedules a check
  /// of the files.
  private func watch(_ wanted: Set<String>) {
    var refusal: (directory: String, code: Int32)?
    var isMissing = false
    var watched: [String: Int32] = [:]
    for directory in wanted {
      // For a directory that is already watched, inotify returns the same number. For a new directory at the
      // same path it returns another number.
      let number = inotify_add_watch(descriptor, directory, Self.events)
      if number >= 0 {
        watched[directory] = number
        continue
      }
      isMissing = true
      // A missing directory is no failure: it may appear later.
      if errno != ENOENT, errno != ENOTDIR { refusal = (directory, errno) }
    }
    for (_, number) in directories where !watched.values.contains(number) {
      _ = inotify_rm_watch(descriptor, number)
    }
    // If a directory is newly watched, the pauses begin again with the shortest.
    if !Set(watched.keys).isSubset(of: directories.keys) { backoff.reset() }
    directories = watched
    if let refusal { reportRefusal("inotify_add_watch of \(refusal.directory)", refusal.code) }
    if isMissing { loop.schedule(self, at: backoff.next(at: loop.now())) } else { backoff.reset() }
  }

  /// Calls `onFailure`, unless it was called before. `call` is the system call that failed, and `code` is its
  /// errno.
  private func reportRefusal(_ call: String, _ code: Int32) {
    if hasReportedRefusal { return }
    hasReportedRefusal = true
    let seconds = PollBackoff.longest.components.seconds
    onFailure(
      systemError("\(call) (without it, netopt sees changes of \(paths[0]) up to \(seconds) s late)", code))
  }

  /// The directories of all links on the path to a file, in any component of the path or of a link's target
  /// (path_resolution(7)), and the directory that contains the file in the end.
  private static func directories(of path: String) -> [String] {
    var directories: [String] = []
    var folder = path.hasPrefix("/") ? "" : FileBytes.resolved(".")
    var rest = path.split(separator: "/").map(String.init)
    // The system follows at most 40 links in a path (path_resolution(7)).
    var links = 40
    while !rest.isEmpty {
      let name = rest.removeFirst()
      if name == "." { continue }
      if name == ".." {
        folder = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? ""
        continue
      }
      let isLast = rest.isEmpty
      let target = link("\(folder)/\(name)")
      if target != nil || isLast { directories.append(folder.isEmpty ? "/" : folder) }
      guard let target else {
        folder += "/" + name
        continue
      }
      links -= 1
      if links == 0 { break }
      if target.hasPrefix("/") { folder = "" }
      rest = target.split(separator: "/").map(String.init) + rest
    }
    return directories
  }

  /// The target of a link. `nil` for any other file.
  private static func link(_ path: String) -> String? {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &target, target.count)
    return count > 0 ? String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
  }
}
