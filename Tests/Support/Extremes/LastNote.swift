import NetOptTestSupport
import Glibc

/// A note of a child process about its next action. When the child traps, only the note shows the input that
/// caused the trap.
package struct LastNote: Sendable {
  /// The file that the child and its parent share.
  package let path: String

  /// Makes an empty note.
  package init() throws { path = try TemporaryDirectory.make("note") + "/last" }

  /// The note of another process, in its file.
  package init(_ path: String) { self.path = path }

  /// Replaces the note.
  package func write(_ text: String) { try? TextFile.write(text, to: path) }

  /// The text that was written last, at most its first 4,000 characters. Empty when there is none.
  package var text: String { String(TextFile.read(path).prefix(4000)) }
}
