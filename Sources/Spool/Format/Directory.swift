/// The directories of a spool (spool.5), in the order in which `spoolrun init` makes them.
package enum Directory: String, CaseIterable, Sendable {
  case tmp, new, urgent, cur, partial, done, failed, hold, files

  /// Whether jobs are dropped here.
  package var takesDrops: Bool { self == .new || self == .urgent }

  /// Whether a spool without it is none. Spools of version 0.1 have no `urgent`, and `files` may be a link.
  var isIndispensable: Bool { self != .urgent && self != .files }
}
