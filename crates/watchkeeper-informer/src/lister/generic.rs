//! Listers of objects whose type is not known at compile time.

use std::{any::Any, fmt, sync::Arc};

use kube_core::{ObjectMeta, Selector};

use super::{GetError, Lister, ListerView, NamespaceLister, NamespaceView};
use crate::{CachedRef, Object};

/// An object of any type, with its metadata. Downcast it to the type.
pub trait AnyObject: Any + Send + Sync {
    /// Returns the metadata of the object.
    fn metadata(&self) -> &ObjectMeta;

    /// Returns the object for downcasting.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> AnyObject for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for dyn AnyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.metadata();
        f.debug_struct("AnyObject")
            .field("namespace", &metadata.namespace)
            .field("name", &metadata.name)
            .finish_non_exhaustive()
    }
}

/// A [`Lister`] of any type, as a trait object.
pub trait GenericLister: fmt::Debug + Send + Sync {
    /// Returns the objects whose labels match; see [`Lister::list`].
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>>;

    /// Returns the object with this key; see [`Lister::get`].
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, GetError>;

    /// Returns a point-in-time view; see [`Lister::view`].
    fn view(&self) -> Box<dyn GenericView + '_>;

    /// Returns a lister of one namespace; see [`Lister::namespace`].
    fn namespace(&self, namespace: &str) -> Box<dyn GenericNamespaceLister>;
}

/// A [`NamespaceLister`] of any type, as a trait object.
pub trait GenericNamespaceLister: fmt::Debug + Send + Sync {
    /// Returns the objects whose labels match; see [`NamespaceLister::list`].
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>>;

    /// Returns the object with this name; see [`NamespaceLister::get`].
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    fn get(&self, name: &str) -> Result<Arc<dyn AnyObject>, GetError>;

    /// Returns a point-in-time view; see [`NamespaceLister::view`].
    fn view(&self) -> Box<dyn GenericView + '_>;
}

/// A [`ListerView`] or [`NamespaceView`] of any type, as a trait object.
pub trait GenericView {
    /// Returns the objects whose labels match.
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>>;

    /// Returns the object with this key, or with this name in the view of a namespace.
    ///
    /// # Errors
    /// Returns a [`GetError`] if the object is not in the cache, or cannot be decoded.
    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, GetError>;
}

fn erased<K: Object>(object: Arc<K>) -> Arc<dyn AnyObject> {
    object
}

fn kept<K: Object>(object: CachedRef<'_, K>) -> Arc<dyn AnyObject> {
    object.into_arc()
}

impl<K: Object> GenericLister for Lister<K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).into_iter().map(erased).collect()
    }

    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, GetError> {
        self.get(key).map(erased)
    }

    fn view(&self) -> Box<dyn GenericView + '_> {
        Box::new(self.view())
    }

    fn namespace(&self, namespace: &str) -> Box<dyn GenericNamespaceLister> {
        Box::new(self.namespace(namespace))
    }
}

impl<K: Object> GenericNamespaceLister for NamespaceLister<K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).into_iter().map(erased).collect()
    }

    fn get(&self, name: &str) -> Result<Arc<dyn AnyObject>, GetError> {
        self.get(name).map(erased)
    }

    fn view(&self) -> Box<dyn GenericView + '_> {
        Box::new(self.view())
    }
}

impl<K: Object> GenericView for ListerView<'_, K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).map(kept).collect()
    }

    fn get(&self, key: &str) -> Result<Arc<dyn AnyObject>, GetError> {
        self.get(key).map(kept)
    }
}

impl<K: Object> GenericView for NamespaceView<'_, K> {
    fn list(&self, selector: &Selector) -> Vec<Arc<dyn AnyObject>> {
        self.list(selector).map(kept).collect()
    }

    fn get(&self, name: &str) -> Result<Arc<dyn AnyObject>, GetError> {
        self.get(name).map(kept)
    }
}
