/// Why a file in `new/` counts as still being written.
package enum Unfinished: Sendable {
  /// A process has it open for writing, or another worker looks at it.
  case inUse
  /// It has changed a moment ago, and the kernel does not say who has it open.
  case young
  /// It has changed a moment ago, and on this file system nobody can see who has it open: see
  /// ``FileSystemKind/leaseShowsAllWriters``.
  case unsettled
  /// It has changed a moment ago, and is empty.
  case empty
  /// It has changed a moment ago, and its last line has no newline. Nobody has it open for writing, as far as the
  /// kernel says.
  case lacksNewline

  /// For a person.
  package var reason: String {
    switch self {
    case .inUse: "a process has it open for writing"
    case .unsettled:
      "it changed less than \(Spool.settlingTime) s ago, and this file system does not show who still writes it"
    case .young: "it changed less than \(Spool.settlingTime) s ago"
    case .empty: "it is empty"
    case .lacksNewline:
      "its last line has no newline: add one, or it goes to failed \(Spool.settlingTime) s after its last change"
    }
  }
}
