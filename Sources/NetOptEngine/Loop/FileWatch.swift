import Glibc
package import NetOptCore

/// What tells a file from what was in its place before: stat(2).
package struct FileIdentity: Hashable, Sendable {
  private let device: dev_t
  private let number: ino_t
  private let size: off_t
  private let changes: [Int]

  /// Looks at a file, and at what a link leads to. `nil` when there is none.
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

/// When it is looked for what cannot be watched: soon at first, then after pauses that double.
struct LookPauses {
  static let shortest = Duration.seconds(1)
  static let longest = Duration.seconds(30)

  private var pause = shortest
  private var due: MonotonicInstant?

  /// The next look. Looks in between, for other reasons, do not put it off.
  mutating func next(at now: MonotonicInstant) -> MonotonicInstant {
    if let due, due > now { return due }
    let next = now + pause
    pause = min(pause * 2, Self.longest)
    due = next
    return next
  }

  /// Something has changed: it is looked soon again.
  mutating func reset() { self = LookPauses() }
}

/// Tells when files are changed, replaced, removed or made: inotify(7) on the directories in which they are.
///
/// A file that is watched itself is lost when another takes its place, which is how editors and deployments write. So
/// its directory is watched, and that of every link on the way to it; whatever happens there, it is looked
/// whether the files are other ones than before. A burst of changes counts as one.
///
/// Where a directory is not there, or the system does not watch it or anything, it is looked from time to time, at first every second
/// and then less often, down to twice a minute.
package final class FileWatch: LoopTimer, ReadinessHandler, @unchecked Sendable {
  // Unchecked: after it is made, it is touched on the loop's thread alone.

  /// Long enough for a list and its signature to be written one after the other, and short for a person.
  private static let settling = Duration.milliseconds(100)
  private static let events = UInt32(
    IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
      | IN_MOVE_SELF)

  private let loop: EventLoop
  private let paths: [String]
  private let onChange: @Sendable () -> Void
  private let onFailure: @Sendable (NetOptError) -> Void
  private let open: @Sendable () -> Int32
  private var known: [FileIdentity?]
  private var isRunning = false
  /// inotify's; -1 when the system gives none: a user may have few (fs.inotify.max_user_instances).
  private var descriptor: Int32 = -1
  private var directories: [String: Int32] = [:]
  private var looks = LookPauses()
  private var hasToldOfRefusal = false

  /// Makes a watch that does not watch yet.
  ///
  /// - Parameters:
  ///   - paths: the files, which need not exist.
  ///   - known: what is known of them: a file that is another one by now has changed.
  ///   - onChange: called on the loop's thread; it hands the work on.
  ///   - onFailure: called there when the system cannot watch: once, be it one directory or all of them.
  ///   - open: makes the descriptor; inotify_init1(2).
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

  private final class Work: LoopWork {
    private let watch: FileWatch
    private let starts: Bool
    init(_ watch: FileWatch, starts: Bool) {
      self.watch = watch
      self.starts = starts
    }
    func run() { if starts { watch.begin() } else { watch.end() } }
  }

  /// Begins to watch. From any thread.
  package func start() { _ = loop.submit(Work(self, starts: true)) }

  /// Ends watching, before the loop stops. From any thread.
  package func stop() { _ = loop.submit(Work(self, starts: false)) }

  private func begin() {
    guard !isRunning else { return }
    isRunning = true
    descriptor = open()
    if descriptor >= 0 {
      loop.watch(descriptor, for: .read, self)
    } else {
      tellOfRefusal("inotify_init1", errno)
    }
    look()
  }

  private func end() {
    loop.cancel(self)
    isRunning = false
    guard descriptor >= 0 else { return }
    loop.unwatch(descriptor, of: self)
    close(descriptor)
    descriptor = -1
  }

  /// Something happened in one of the directories.
  package func ready(_ descriptor: Int32, for readiness: Readiness) {
    // What it was does not matter, nor that events were lost (IN_Q_OVERFLOW).
    withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { buffer in
      while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
    }
    // Not later with each event: in a busy directory that would be never.
    if due > loop.now() + Self.settling || !isScheduled {
      loop.schedule(self, at: loop.now() + Self.settling)
    }
  }

  /// The changes have settled, or a directory is looked for again.
  package override func fire() {
    if isRunning { look() }
  }

  private func look() {
    watchDirectories()
    let present = paths.map { FileIdentity($0) }
    guard present != known else { return }
    known = present
    looks.reset()
    onChange()
  }

  /// Watches the directories in which the files are now. They may be other ones than before.
  ///
  /// A link may be replaced after it was followed and before its directory is watched: then nothing tells of that. So links are followed once more,
  /// until they lead where they led before.
  private func watchDirectories() {
    guard descriptor >= 0 else { return loop.schedule(self, at: looks.next(at: loop.now())) }
    var wanted = wantedDirectories
    for _ in 0..<Self.mostTries {
      watch(wanted)
      let now = wantedDirectories
      if now == wanted { return }
      wanted = now
    }
    // Somebody replaces links without end.
    loop.schedule(self, at: loop.now() + Self.settling)
  }

  /// How often links are followed in a row.
  private static let mostTries = 8

  private var wantedDirectories: Set<String> {
    Set(paths.flatMap { [FileBytes.folder(of: $0)] + Self.directories(of: $0) })
  }

  private func watch(_ wanted: Set<String>) {
    var refusal: (directory: String, code: Int32)?
    var isMissing = false
    var watched: [String: Int32] = [:]
    for directory in wanted {
      // Of a directory that is watched already this gives the same number; of one in its place another.
      let number = inotify_add_watch(descriptor, directory, Self.events)
      if number >= 0 {
        watched[directory] = number
        continue
      }
      isMissing = true
      // One that is not there will be: it is no failure.
      if errno != ENOENT, errno != ENOTDIR { refusal = (directory, errno) }
    }
    for (_, number) in directories where !watched.values.contains(number) {
      _ = inotify_rm_watch(descriptor, number)
    }
    // There is something new to watch.
    if !Set(watched.keys).isSubset(of: directories.keys) { looks.reset() }
    directories = watched
    if let refusal { tellOfRefusal("inotify_add_watch of \(refusal.directory)", refusal.code) }
    if isMissing { loop.schedule(self, at: looks.next(at: loop.now())) } else { looks.reset() }
  }

  private func tellOfRefusal(_ call: String, _ code: Int32) {
    if hasToldOfRefusal { return }
    hasToldOfRefusal = true
    let seconds = LookPauses.longest.components.seconds
    onFailure(
      systemError("\(call), without which changes of \(paths[0]) are seen up to \(seconds) s late,", code))
  }

  /// The directories of the links on the way to a file, whichever component of whichever path they are
  /// (path_resolution(7)), and the one that it is in in the end.
  private static func directories(of path: String) -> [String] {
    var directories: [String] = []
    var folder = path.hasPrefix("/") ? "" : FileBytes.resolved(".")
    var rest = path.split(separator: "/").map(String.init)
    // As many as the system follows; one more is an error of its own.
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

  /// What a link says; `nil` for anything else.
  private static func link(_ path: String) -> String? {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &target, target.count)
    return count > 0 ? String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
  }
}
