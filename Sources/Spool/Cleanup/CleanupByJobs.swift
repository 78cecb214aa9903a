internal import Glibc
internal import SystemPackage

/// What is a leftover only by what the jobs say.
extension Cleanup {
  /// Removes the data of a job that failed because its output is another file, and so cannot be published. Data of
  /// other failed jobs stays: `retry` continues it. Until a person cleans up, that holds for this data as well.
  func removeUnpublished(_ path: Path, of job: FileName) throws(SpoolError) {
    // The look that costs little; the one that counts is under the lock of the data.
    guard try isUnpublishable(job) else { return }
    do throws(SpoolError) {
      let bytes = try spool.withIdleData(path) { (status) throws(SpoolError) -> Int64? in
        // A worker that claims the job from now on finds the data locked, and takes another name.
        guard try isUnpublishable(job) else { return nil }
        if !options.isDry { try spool.system.unlink(spool.root, path) }
        return status.size
      }
      if let bytes { report(CleanupFinding(.unpublished, path, bytes: bytes)) }
    } catch  where spool.concernsOneFile(error, in: .partial) {
      report(CleanupFinding(.stuck, path, obstacle: error))
    }
  }

  private func isUnpublishable(_ job: FileName) throws(SpoolError) -> Bool {
    let places = try spool.places(of: job).filter { $0.directory != .done }
    guard let place = places.first, places.count == 1, place.directory == .failed else { return false }
    do throws(SpoolError) {
      let attempts = try spool.job(.failed, place.name)?.journal.attempts
      return attempts?.endsInFailure == true && attempts?.lastFailure?["code"] == FailureCode.outputExists.rawValue
    } catch  where error.isUnreadable {
      return false
    }
  }

  /// Removes links to output roots that are gone, if `spoolrun get` made them and no job names them. It makes them
  /// again when it needs them. A person's own links stay: the disk may be mounted again.
  func cleanRoots() throws(SpoolError) {
    var gone = try goneRoots()
    if gone.isEmpty { return }
    try spool.forEachJob(in: Spool.jobDirectories.filter { $0 != .done }) { text in
      if let root = text.request.root { gone.remove(root.text) }
    }
    for name in gone.sorted() {
      let path = Path("\(Spool.roots)/\(name)")
      do throws(SpoolError) {
        if !options.isDry { try spool.system.unlink(spool.root, path) }
        report(CleanupFinding(.root, path))
      } catch  where error.errno == .noSuchFileOrDirectory {
      } catch  where error.errno == .notPermitted || error.errno == .permissionDenied {
        report(CleanupFinding(.stuck, path, obstacle: error))
      }
    }
  }

  private func goneRoots() throws(SpoolError) -> Set<String> {
    var gone: Set<String> = []
    do throws(SpoolError) {
      let stream = DirectoryStream(try spool.system.open(spool.root, Path(Spool.roots), O_RDONLY | O_DIRECTORY))
      while let entry = try stream.next() {
        guard let name = String(validating: entry.bytes, as: UTF8.self), try isOwnRoot(name) else { continue }
        do throws(SpoolError) {
          // Through the link.
          _ = try spool.system.status(spool.root, Path("\(Spool.roots)/\(name)/."))
        } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory {
          gone.insert(name)
        } catch {
          // It is there, or that cannot be known.
        }
      }
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
    return gone
  }

  private func isOwnRoot(_ name: String) throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      return try Spool.rootName(of: spool.outputRoot(named: name)) == name
    } catch  where error.errno == .invalidArgument || error.errno == .noSuchFileOrDirectory {
      return false
    }
  }
}
