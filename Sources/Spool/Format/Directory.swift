/// The directories of a spool (spool.5), in the order in which `spoolrun init` makes them.
package enum Directory: String, CaseIterable, Sendable {
  case tmp, new, urgent, cur, partial, done, failed, hold, standing, workers, files

  /// Whether jobs are dropped here.
  package var takesDrops: Bool { self == .new || self == .urgent }

  /// Whether people and other programs write files into it, so that one may be half written.
  package var isDroppedInto: Bool { takesDrops || self == .standing }

  /// Whether what is in it is tried again at a time of its own.
  var isScheduled: Bool { self == .partial || self == .standing }

  /// Whether a spool may lack it, as those of version 0.1 do. It is made when it is needed.
  package var isOptional: Bool { self == .urgent || self == .standing || self == .workers }
}
