/// The directories of a spool (spool.5), in the order in which `spoolrun init` makes them.
package enum Directory: String, CaseIterable, Sendable {
  case tmp, new, cur, partial, done, failed, hold, files
}
