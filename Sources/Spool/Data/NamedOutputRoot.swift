internal import Glibc
internal import SystemPackage

extension Spool {
  /// The directory that the link `roots/NAME` leads to; the link itself where the directory's path is not UTF-8.
  /// - Throws: ``SpoolError``: ENOENT where there is no such link, EINVAL where it is no link to an absolute path.
  func outputRoot(named name: String) throws(SpoolError) -> String {
    let path = Path("\(Self.roots)/\(name)")
    let target = try system.readLink(root, path)
    guard target.first == UInt8(ascii: "/") else {
      throw SpoolError(call: .open, path: path.display, errno: .invalidArgument)
    }
    if let text = String(validating: target, as: UTF8.self) { return text }
    do throws(Errno) { return "\(try realPath(location))/\(Self.roots)/\(name)" } catch {
      throw SpoolError(call: .open, path: path.display, errno: error)
    }
  }

  /// The name in `roots` that `spoolrun get` gives to a directory.
  package static func rootName(of directory: String) -> String {
    String(PayloadName.fingerprint(of: [directory]).prefix(16))
  }

  /// Lets jobs name `directory` as their output root.
  /// - Parameters:
  ///   - directory: an absolute path.
  ///   - name: the link's name in `roots`, without a slash.
  /// - Throws: ``SpoolError``, EEXIST where the name leads elsewhere.
  package func offerOutputRoot(_ directory: String, as name: String) throws(SpoolError) {
    try provide(Path(Self.roots))
    let path = Path("\(Self.roots)/\(name)")
    do throws(SpoolError) {
      try system.symbolicLink(Path(directory), root, path)
      // The job that names it lasts, too.
      try system.open(root, Path(Self.roots), O_RDONLY | O_DIRECTORY).fsync()
    } catch  where error.errno == .fileExists {
      if try outputRoot(named: name).exact != directory.exact { throw error }
    }
  }
}

extension CurrentOutputRoot {
  /// The output root that a job names. It may contain the spool if the payload is put directly into it, as a person's
  /// home directory does.
  /// - Throws: ``OutputRootProblem``.
  package convenience init(named name: String, for output: OutputPath, spool: Spool) throws(OutputRootProblem) {
    let location: String
    do throws(SpoolError) { location = try spool.outputRoot(named: name) } catch { throw .missing(error) }
    try self.init(location, spool: spool, reach: output.parents.isEmpty ? .directly : .below)
  }
}
