import NetOptTestSupport
import Glibc

/// A note that a child process writes into a file before each action. When the child traps, its parent reads
/// the note: only the note shows which input caused the trap.
package struct LastNote: Sendable {
  /// The file that the child and its parent share.
  package let path: String

  /// Makes a note without text, in a new temporary directory.
  package init() throws { path = try TemporaryDirectory.make("note") + "/last" }

  /// Refers to the note that another process made, by its `path`.
  package init(_ path: String) { self.path = path }

  /// Replaces the text. Ignores errors.
  package func write(_ text: String) { try? TextFile.write(text, to: path) }

  /// The text that was written last, at most its first 4,000 characters. Empty when there is none.
  package var text: String { String(TextFile.read(path).prefix(4000)) }
}
